//! Datagrams of UDP over one ResTP connection: one message each, as unreliable as they were, or of use until a deadline
//! (docs/protocol/datagrams.md).
//!
//! | Module | Holds |
//! |---|---|
//! | `message` | what is said, and datagrams that take several messages |
//! | `composition` | what carries it |
//! | `outlet` | what waits to be sent, or for another connection, as long as it is of use |
//! | `intake` | what comes, no faster than sockets take it |
//! | `seldom` | what is said now and then |
//! | `flows` | flows by number, bounded, until they are idle |
//! | `listening`, `connecting` | the end with the clients, the end with the target |

mod composition;
mod connecting;
mod flows;
mod intake;
mod listening;
mod message;
mod outlet;
mod seldom;

pub use composition::{check_fitness, composition, deadline_of, in_time};
pub use connecting::connecting;
pub use listening::{Listening, listen_at};
pub use message::{Message, Open, Operation};

/// ResTP port at which `restp serve` takes datagrams.
pub const SERVICE_PORT: u16 = 7072;

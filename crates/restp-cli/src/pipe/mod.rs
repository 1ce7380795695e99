//! What who serves programs and who reaches them say to each other (docs/protocol/pipe.md).
//!
//! | Module | Holds |
//! |---|---|
//! | `composition` | what carries it |
//! | `request`, `answer` | what is said first, and what is answered |
//! | `place` | names of places, and which of them are allowed |
//! | `join` | bytes both ways |
//! | `target` | connections to places with several addresses |

mod answer;
mod composition;
mod join;
mod place;
mod request;
pub mod target;

pub use answer::{Answer, Reason, Refusal};
pub use composition::{check_fitness, prepare};
pub use join::{Broken, join, join_tcp, listen, over, reset, reset_unless_joined};
pub use place::{AllowList, Place};
pub use request::{Operation, Request, Token};

/// Among the tokens of a listener, names no connection: another holder of the same key has the listener now.
pub const SUPERSEDED: Token = [0; 16];

/// ResTP port at which `restp serve` serves.
pub const SERVICE_PORT: u16 = 7071;

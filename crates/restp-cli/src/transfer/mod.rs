//! The application protocol of `restp send` and `restp recv`: one file over one connection
//! (docs/protocol/file-transfer.md).
//!
//! ```text
//! sender                                        receiver
//! source ─► Offer, data, digest ───────────────► inlet ─► target (temporary file)
//!           verdict ◄──── Accepted ◄──────────── name is free
//!           verdict ◄──── Verified ◄──────────── digests agree, file has its name
//! ```
//!
//! | File | Holds |
//! |---|---|
//! | `capability` | what a ticket gives |
//! | `pace` | senders that are too slow |
//! | `message` | the bytes: [`Offer`], [`Answer`] |
//! | `fitness` | which compositions carry a file |
//! | `name` | which file names a receiver takes |
//! | `ticket` | addresses as one word |
//! | `source`, `target` | the two files, read and written on threads of their own that also hash |
//! | `inlet` | exact numbers of bytes from a connection |
//! | `sender`, `receiver` | the two ends |
//! | `watch` | what a transfer looks like while it runs; outages noticed |
//! | `outcome` | the result both ends print |

mod capability;
mod fitness;
mod inlet;
mod message;
mod name;
mod outcome;
mod pace;
mod receiver;
mod sender;
mod source;
mod target;
mod ticket;
mod watch;

pub use capability::Capability;
pub use fitness::check as check_fitness;
pub use message::{Answer, Offer};
pub use name::check as check_name;
pub use outcome::Outcome;
pub use receiver::{Arrival, ReceiveError, Rejection, receive, refuse};
pub use sender::{SendError, send};
pub use source::Source;
pub use target::Folder;
pub use ticket::{Ticket, TicketError};
pub use watch::{Look, News, Watch};

/// ResTP port at which `restp recv` serves.
pub const SERVICE_PORT: u16 = 7070;

/// Bytes that travel together between the network and the threads of the files.
const CHUNK_BYTES: usize = 256 << 10;

/// Chunks on their way between two threads: enough that neither waits for the other's hiccups, and bounded.
const CHUNKS_AHEAD: usize = 8;

/// A SHA-256 digest (FIPS 180-4).
pub type Digest = [u8; 32];

/// Lower-case hexadecimal digits, as `sha256sum` prints them.
pub fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

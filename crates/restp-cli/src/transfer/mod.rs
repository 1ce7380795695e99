//! The application protocol of `restp send` and `restp recv`: files, folders and links over one connection
//! (docs/protocol/file-transfer.md).
//!
//! ```text
//! sender                                        receiver
//! source ─► Offer, manifest, records ──────────► inlet ─► target ─► writer (hidden files)
//!           verdict ◄──── Accepted ◄──────────── names are free
//! source ◄─ told ◄─────── Has, digests ◄──────── inventory of what is there
//!           verdict ◄──── Verified ◄──────────── digests agree, files have their names
//! ```
//!
//! | File | Holds |
//! |---|---|
//! | `capability` | what a ticket gives |
//! | `pace` | senders that are too slow |
//! | `limit` | senders that shall not be too fast |
//! | `message` | the bytes: [`Offer`], [`Record`], [`Answer`] |
//! | `manifest`, `codec` | the list of what is sent, its rules and its bytes |
//! | `agreement` | the digest that both ends must agree on |
//! | `fitness` | which compositions carry a file |
//! | `name` | which file names a receiver takes |
//! | `ticket` | addresses as one word |
//! | `walk` | from what the user named to a manifest |
//! | `folder`, `part` | the receiver's folder, and files on their way in it |
//! | `inventory`, `told` | what the receiver has already: looked up there, and known here |
//! | `claims` | who takes the place of a transfer that he began before |
//! | `filled` | who of several that fill a folder gives it its permissions |
//! | `source`, `reading`, `writer`, `copy` | what is read and written, on threads of their own that also hash |
//! | `target` | what is received, as seen from the network |
//! | `inlet` | exact numbers of bytes from a connection |
//! | `sender`, `receiver` | the two ends |
//! | `watch` | what a transfer looks like while it runs; outages noticed |
//! | `diagnosis` | what was found on the paths, in words |
//! | `outcome` | the result both ends print |

mod agreement;
mod capability;
mod claims;
mod codec;
mod copy;
pub(crate) mod diagnosis;
mod filled;
mod fitness;
pub(crate) mod folder;
mod inlet;
mod inventory;
mod limit;
pub(crate) mod manifest;
mod message;
mod name;
mod outcome;
mod pace;
pub(crate) mod part;
mod reading;
mod receiver;
mod sender;
mod source;
pub(crate) mod target;
pub(crate) mod ticket;
mod told;
pub(crate) mod walk;
mod watch;
mod writer;

pub use crate::user_timeout::UserTimeout;
pub use capability::Capability;
pub use fitness::{carries, check as check_fitness};
pub use folder::Folder;
pub use inlet::{Inlet, Pieces};
pub use manifest::Manifest;
pub(crate) use message::printable;
pub use message::{Answer, Offer, Record};
pub(crate) use name::check as check_name;
pub use outcome::{Outcome, Tally};
pub use receiver::{Arrival, ReceiveError, Rejection, receive, refuse};
pub use sender::{Introduction, SendError, send};
pub use source::{Source, SourceError};
pub use ticket::{Ticket, TicketError};
pub use walk::{Exclusion, STDIN, Selection, Unsendable};
pub use watch::{Audience, Look, News, Watch};

/// ResTP port at which `restp recv` serves.
pub const SERVICE_PORT: u16 = 7070;

/// Bytes that travel together between the network and the threads of the files, and that have one digest where an end tells the other
/// what it has.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Bytes that are sent before the receiver has said what it has: no more than leave in the first round trip anyway, and less than one
/// chunk.
const LEAD_BYTES: u64 = 64 << 10;

/// Chunks on their way between two threads: enough that neither waits for the other's hiccups, and bounded.
const CHUNKS_AHEAD: usize = 8;

/// A SHA-256 digest (FIPS 180-4).
pub type Digest = [u8; 32];

/// Lower-case hexadecimal digits, as `sha256sum` prints them.
pub fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

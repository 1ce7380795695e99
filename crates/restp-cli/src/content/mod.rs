//! Content by name: `restp publish`, `restp fetch` and `restp cache` (docs/content.md, docs/protocol/itp.md). The machine is
//! [`Node`](restp_rivals::itp::node::Node); here are its disks.
//!
//! | File | Holds |
//! |---|---|
//! | `ticket` | what names an object: where, of whom, and which |
//! | `layout` | how files and folders are one object |
//! | `slots` | manifests by their positions, in a file |
//! | `published` | what is published, read where it lies |
//! | `download` | what is fetched, on its way |
//! | `store`, `pack` | what a cache keeps |
//! | `kept` | the same while a cache works |
//! | `disk` | disk access off the driver's thread |

mod disk;
mod download;
mod kept;
mod layout;
mod pack;
mod published;
mod slots;
mod store;
mod ticket;

pub use download::{Download, DownloadError};
pub use kept::Kept;
pub use published::{PublishError, Readable, publish};
pub use store::{DiskStore, StoreStats};
pub use ticket::ContentTicket;

/// Bytes of a chunk where nothing else is said: with 48 bytes of headers it leaves 68 of an Ethernet packet to tunnels on the way.
pub const CHUNK_BYTES: u32 = 1384;

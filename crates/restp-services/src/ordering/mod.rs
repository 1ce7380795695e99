//! When data is handed up (ResTP §3.5.7). The [`Receiver`](crate::receiver::Receiver) gives every numbered segment to a
//! [`Reassembly`], or every stretch of bytes to a [`ByteStream`], which holds back, delivers, recognises retransmissions, and
//! keeps the receiver's pointer RCV.NXT. What it hands up waits in the [`Inbox`].

mod arrived;
mod byte_stream;
mod inbox;
mod partial;
mod reorder_buffer;

pub use arrived::Arrived;
pub use byte_stream::{ByteStream, Stretch};
pub use inbox::Inbox;
pub use partial::HoldParameters;
pub use reorder_buffer::{Arrival, Reassembly};

/// Ordering service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Deliver on arrival.
    Unordered,
    /// Hold until all predecessors are delivered.
    Ordered,
    /// Ordered, but a hole is skipped when the application has waited long enough (OP-48).
    Partial,
}

impl Ordering {
    /// Every service with its name in compositions.
    pub const ALL: [(&'static str, Ordering); 3] = [
        ("unordered", Ordering::Unordered),
        ("ordered", Ordering::Ordered),
        ("partial", Ordering::Partial),
    ];
}

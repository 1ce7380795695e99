//! When a segment is handed up (ResTP §3.5.7). The connection gives every numbered arrival to [`Reassembly`],
//! which holds back, delivers, recognises repeats, and keeps the receiver's pointer RCV.NXT. What it hands up waits in
//! the [`Inbox`].

mod inbox;
mod partial;
mod reorder_buffer;

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

//! May the peer take more (ResTP §3.5.4)? The sender asks [`SendWindow`] before each new segment; the receiver
//! asks [`ReceiveWindow`] what to advertise on each packet and whether reading has opened enough to say so.

mod credit;
mod window;

pub use credit::Credit;
pub use window::{ReceiveWindow, SendWindow, WindowParameters};

/// Flow-control technique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// Never blocks.
    None,
    /// Window advertised in segments (ResTP §3.1.3).
    Window(WindowParameters),
}

impl FlowControl {
    /// Every technique with its name in compositions.
    pub const NAMES: [&'static str; 2] = ["none", "window"];

    /// The name in compositions.
    pub fn name(&self) -> &'static str {
        match self {
            FlowControl::None => "none",
            FlowControl::Window(_) => "window",
        }
    }
}

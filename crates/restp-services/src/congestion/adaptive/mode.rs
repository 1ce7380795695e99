//! What the controller does: a flow that fills the queue is met as one flow more, as in Nimbus (SIGCOMM 2022).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubling until the path is full.
    Startup,
    /// Nobody else fills the queue.
    Alone,
    /// Somebody does.
    Competing,
}

impl Mode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Mode::Startup => "startup",
            Mode::Alone => "alone",
            Mode::Competing => "competing",
        }
    }
}

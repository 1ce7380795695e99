//! The three ways in which the controller sends; who else fills the queue decides between the last two, as in Nimbus (SIGCOMM 2022).

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

//! Ctrl-C, the request to terminate and the end of the terminal: what ends a transfer in good order.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Watches for all of them from the moment it is made.
pub struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
    /// None where somebody has asked to go on without a terminal, as `nohup` does.
    hangup: Option<Signal>,
}

impl Interrupt {
    /// Inside of a runtime.
    ///
    /// # Errors
    /// When the system refuses a signal handler.
    pub fn watch() -> Result<Self, Failure> {
        let watch = |kind| signal(kind).map_err(|error| Failure::operation(format!("signals: {error}")));
        Ok(Interrupt {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
            hangup: (!ignores_hangup())
                .then(|| watch(SignalKind::hangup()))
                .transpose()?,
        })
    }

    /// Waits for the next of them.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            Some(_) = recv(self.hangup.as_mut()) => {}
        }
    }
}

async fn recv(signal: Option<&mut Signal>) -> Option<()> {
    signal?.recv().await
}

/// Was this program told to ignore SIGHUP, signal 1, before it began? Where the system does not say, it was.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_none_or(|mask| mask & 1 == 1)
}

/// Waits for SIGHUP: the terminal, or the program that this one works for, is gone. Watches from the call on. Not for
/// commands that people run with `nohup`, which this would undo.
///
/// # Errors
/// When the system refuses a signal handler.
pub fn hangup() -> Result<impl Future<Output = ()>, Failure> {
    let mut hangup =
        signal(SignalKind::hangup()).map_err(|error| Failure::operation(format!("signals: {error}")))?;
    Ok(async move {
        hangup.recv().await;
    })
}

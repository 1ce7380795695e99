//! Ctrl-C and the request to terminate: what ends a transfer in good order.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Watches for both from the moment it is made.
pub struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
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
        })
    }

    /// Waits for the next of them.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
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

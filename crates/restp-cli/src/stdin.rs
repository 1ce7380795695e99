//! Standard input. A thread that waits there for more is not to be interrupted, so a command that reads it ends without its threads.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_READ: AtomicBool = AtomicBool::new(false);

/// This command reads it. It has no temporary files that threads would have to remove.
pub fn is_read_from_now() {
    IS_READ.store(true, Ordering::Relaxed);
}

pub fn is_read() -> bool {
    IS_READ.load(Ordering::Relaxed)
}

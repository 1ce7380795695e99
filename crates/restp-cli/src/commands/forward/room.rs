//! How many TCP connections run at once.

use crate::output::note;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for so many connections.
#[derive(Clone)]
pub struct Room {
    most: usize,
    free: Arc<Semaphore>,
    /// That there is none has been said.
    is_told: Arc<AtomicBool>,
}

impl Room {
    /// For `most`.
    pub fn of(most: usize) -> Self {
        Room {
            most,
            free: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            is_told: Arc::default(),
        }
    }

    /// Room for one more, once there is.
    pub async fn enter(&self) -> OwnedSemaphorePermit {
        let free = self.free.available_permits();
        // Once until half of it is free again: where it is scarce it comes and goes with every connection.
        if free == 0 && !self.is_told.swap(true, Ordering::Relaxed) {
            note(format!(
                "{} connections are open, as many as --max-connections allows: further ones wait",
                self.most
            ));
        } else if free > self.most / 2 {
            self.is_told.store(false, Ordering::Relaxed);
        }
        loop {
            // Nobody closes it.
            if let Ok(room) = self.free.clone().acquire_owned().await {
                return room;
            }
        }
    }
}

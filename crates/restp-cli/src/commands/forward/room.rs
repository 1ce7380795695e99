//! How many TCP connections run at once.

use crate::output::note;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for so many connections.
#[derive(Clone)]
pub struct Room {
    most: usize,
    free: Arc<Semaphore>,
}

impl Room {
    /// For `most`.
    pub fn of(most: usize) -> Self {
        Room {
            most,
            free: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Room for one more, once there is.
    pub async fn enter(&self) -> OwnedSemaphorePermit {
        if self.free.available_permits() == 0 {
            note(format!(
                "{} connections are open, as many as --max-connections allows: further ones wait",
                self.most
            ));
        }
        loop {
            // Nobody closes it.
            if let Ok(room) = self.free.clone().acquire_owned().await {
                return room;
            }
        }
    }
}

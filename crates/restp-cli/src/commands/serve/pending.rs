//! Associations in which no request has shown the capability yet: few, because what they send may wait in full windows.

use super::super::admission_limit::{AdmissionLimit, Visitor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// At once; once half of them are taken no source has more than an eighth.
const MOST: usize = 64;

/// All of them.
#[derive(Clone)]
pub struct PendingAssociations(Arc<Mutex<AdmissionLimit>>);

impl Default for PendingAssociations {
    fn default() -> Self {
        PendingAssociations(Arc::new(Mutex::new(AdmissionLimit::at_most(MOST))))
    }
}

impl PendingAssociations {
    /// One more, of `visitor`; none: there are too many.
    pub fn enter(&self, visitor: Visitor) -> Option<Admission> {
        self.limit().take(&visitor).then(|| Admission {
            pending: self.clone(),
            visitor,
            is_granted: AtomicBool::new(false),
        })
    }

    fn limit(&self) -> MutexGuard<'_, AdmissionLimit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one association is admitted. It is pending until then, or until this is dropped.
pub struct Admission {
    pending: PendingAssociations,
    visitor: Visitor,
    is_granted: AtomicBool,
}

impl Admission {
    /// Who has opened it.
    pub fn visitor(&self) -> Visitor {
        self.visitor
    }

    /// A request has shown the capability.
    pub fn grant(&self) {
        if !self.is_granted.swap(true, Ordering::Relaxed) {
            self.pending.limit().leave(&self.visitor);
        }
    }

    /// Waits for so long, and for ever if one has by then.
    pub async fn lapse(&self, within: Duration) {
        sleep(within).await;
        if self.is_granted() {
            std::future::pending().await
        }
    }

    /// Has one?
    pub fn is_granted(&self) -> bool {
        self.is_granted.load(Ordering::Relaxed)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[test]
    fn one_that_is_admitted_or_over_makes_room_for_the_next() {
        let all = PendingAssociations::default();
        let enter = || all.enter(Visitor::at([10, 0, 0, 1].into()));
        let pending: Vec<_> = std::iter::from_fn(enter).collect();
        assert_eq!(pending.len(), MOST / 2, "of one source");
        pending[0].grant();
        pending[0].grant();
        assert!(pending[0].is_granted());
        let next = enter().expect("room for one");
        assert!(enter().is_none() && !next.is_granted());
        drop(pending);
        assert_eq!(std::iter::from_fn(enter).collect::<Vec<_>>().len(), MOST / 2 - 1);
    }

    /// A pipe that lasted longer than that broke: nobody looked again whether its request had come meanwhile.
    #[tokio::test(start_paused = true)]
    async fn what_is_granted_while_it_is_pending_does_not_lapse() {
        let within = Duration::from_secs(30);
        let all = PendingAssociations::default();
        let admission = all.enter(Visitor::at([10, 0, 0, 1].into())).expect("room");
        timeout(within * 2, admission.lapse(within))
            .await
            .expect("it lapses");
        let later = async {
            sleep(within / 2).await;
            admission.grant();
            sleep(within * 2).await;
        };
        tokio::select! {
            () = admission.lapse(within) => panic!("granted"),
            () = later => {}
        }
    }
}

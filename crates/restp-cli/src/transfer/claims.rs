//! Who sends the same again takes the place of the transfer that he began before: it may be that of a sender who was killed, which the
//! receiver has not noticed yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{OwnedMutexGuard, watch};

/// What tells transfers apart.
pub type Id = [u8; 20];

/// The transfers that run into one folder.
#[derive(Clone, Debug, Default)]
pub struct Claims(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    slots: BTreeMap<Id, Weak<Slot>>,
    /// No more are taken.
    is_closed: bool,
}

#[derive(Debug)]
struct Slot {
    /// Counts those who wanted it.
    newest: watch::Sender<u64>,
    held: Arc<tokio::sync::Mutex<()>>,
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    number: u64,
    newest: watch::Receiver<u64>,
    _slot: Arc<Slot>,
    _held: OwnedMutexGuard<()>,
}

impl Claims {
    /// Takes it over from who has it, and waits until he has let it go. None where only one may be there, and another one is.
    pub async fn take(&self, id: Id, only_one: bool) -> Option<Claim> {
        let slot = self.slot(id, only_one)?;
        let mut number = 0;
        slot.newest.send_modify(|newest| {
            *newest += 1;
            number = *newest;
        });
        let newest = slot.newest.subscribe();
        let held = slot.held.clone().lock_owned().await;
        // The one before may have come to its end meanwhile.
        (!self.running().is_closed).then_some(Claim {
            number,
            newest,
            _held: held,
            _slot: slot,
        })
    }

    /// The only one that was wanted has come.
    pub fn close(&self) {
        self.running().is_closed = true;
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, id: Id, only_one: bool) -> Option<Arc<Slot>> {
        let mut running = self.running();
        if running.is_closed {
            return None;
        }
        let slots = &mut running.slots;
        slots.retain(|_, slot| slot.strong_count() > 0);
        if let Some(slot) = slots.get(&id).and_then(Weak::upgrade) {
            return Some(slot);
        }
        if only_one && !slots.is_empty() {
            return None;
        }
        let slot = Arc::new(Slot {
            newest: watch::Sender::new(0),
            held: Arc::default(),
        });
        slots.insert(id, Arc::downgrade(&slot));
        Some(slot)
    }
}

impl Claim {
    /// Waits until somebody else wants it.
    pub fn superseded(&self) -> impl Future<Output = ()> + use<> {
        let (mut newest, number) = (self.newest.clone(), self.number);
        async move {
            if newest.wait_for(|newest| *newest > number).await.is_err() {
                // The claim has gone, and nobody wanted it.
                std::future::pending().await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn the_newest_gets_it_when_the_one_before_lets_it_go() {
        let claims = Claims::default();
        let first = claims.take([1; 20], false).await.expect("free");
        let _other = claims.take([2; 20], false).await.expect("free");
        assert!(timeout(Duration::ZERO, first.superseded()).await.is_err());
        let second = tokio::spawn({
            let claims = claims.clone();
            async move { claims.take([1; 20], true).await }
        });
        first.superseded().await;
        assert!(!second.is_finished());
        drop(first);
        let second = second.await.expect("taken").expect("the same");
        assert!(claims.take([3; 20], true).await.is_none());
        claims.close();
        assert!(claims.take([1; 20], true).await.is_none(), "it has come");
        assert!(timeout(Duration::ZERO, second.superseded()).await.is_err());
    }
}

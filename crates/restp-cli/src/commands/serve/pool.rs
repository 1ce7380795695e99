//! What who connects has asked for and holds for one connection: UDP sockets, TUN devices.

use crate::pipe::Refusal;
use restp::PublicKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// All things of one kind, by their names.
pub struct Pool<T> {
    held: Mutex<BTreeMap<String, Arc<Shared<T>>>>,
}

struct Shared<T> {
    owner: Option<PublicKey>,
    thing: T,
    /// Who holds it: the latest who has asked.
    holder: watch::Sender<u64>,
}

/// A thing that is held for one connection.
pub struct Held<'a, T> {
    of: &'a Pool<T>,
    name: String,
    shared: Arc<Shared<T>>,
    number: u64,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool {
            held: Mutex::default(),
        }
    }
}

impl<T> Pool<T> {
    /// The thing `name`, which `make` makes, with the name that it has then. Where `owner` has it, it goes on: a client that was killed
    /// and started again need not wait.
    ///
    /// # Errors
    /// When another one has it, or it cannot be made.
    pub async fn hold(
        &self,
        name: &str,
        owner: Option<PublicKey>,
        make: impl AsyncFnOnce() -> Result<(String, T), Refusal>,
    ) -> Result<Held<'_, T>, Refusal> {
        if let Some(shared) = self.held().get(name).cloned() {
            if shared.owner != owner {
                return Err(Refusal::other(format!("{name} is in use by another client")));
            }
            let number = *shared.holder.borrow() + 1;
            shared.holder.send_replace(number);
            return Ok(self.held_as(name.to_owned(), shared, number));
        }
        let (name, thing) = make().await?;
        let shared = Arc::new(Shared {
            owner,
            thing,
            holder: watch::Sender::new(0),
        });
        self.held().insert(name.clone(), shared.clone());
        Ok(self.held_as(name, shared, 0))
    }

    fn held_as(&self, name: String, shared: Arc<Shared<T>>, number: u64) -> Held<'_, T> {
        Held {
            of: self,
            name,
            shared,
            number,
        }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Shared<T>>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Held<'_, T> {
    /// The thing.
    pub fn thing(&self) -> &T {
        &self.shared.thing
    }

    /// Waits until somebody else with the same key holds it.
    pub async fn lost(&self) {
        let mut holder = self.shared.holder.subscribe();
        let _ = holder.wait_for(|holder| *holder != self.number).await;
    }

    /// What the one is told who holds it no more.
    pub fn superseded(&self, command: &str) -> Refusal {
        Refusal::other(format!(
            "{}: another `restp {command}` with this key has it now; let one of them use another one",
            self.name
        ))
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        if *self.shared.holder.borrow() == self.number {
            self.of.held().remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thing_goes_on_with_its_owner_and_ends_with_its_last_holder() {
        let pool = Pool::default();
        let (one, other) = (Some(PublicKey([1; 32])), Some(PublicKey([2; 32])));
        let made = || Ok(("a".to_owned(), ()));
        let first = pool.hold("a", one, async || made()).await.expect("made");
        let refused = pool
            .hold("a", other, async || made())
            .await
            .err()
            .expect("in use");
        assert!(refused.sentence.contains("in use"));
        let second = pool
            .hold("a", one, async || panic!("it is there"))
            .await
            .expect("taken over");
        first.lost().await;
        drop(first);
        assert!(pool.held().contains_key("a"));
        drop(second);
        assert!(pool.held().is_empty());
        assert!(pool.hold("a", other, async || made()).await.is_ok());
    }
}

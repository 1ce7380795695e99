//! Associations in which nobody has shown yet what lets him in: few, because what they send may wait in full windows.

use super::super::places::{Places, Visitor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// At once; once half of them are taken no source has more than an eighth.
const MOST: usize = 64;

/// All that wait at the door.
#[derive(Clone)]
pub struct Door(Arc<Mutex<Places>>);

impl Default for Door {
    fn default() -> Self {
        Door(Arc::new(Mutex::new(Places::at_most(MOST))))
    }
}

impl Door {
    /// `visitor` waits to be let in; none: too many do.
    pub fn wait(&self, visitor: Visitor) -> Option<Entry> {
        self.places().take(&visitor).then(|| Entry {
            door: self.clone(),
            visitor,
            is_admitted: AtomicBool::new(false),
        })
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One association at the door, or through it.
pub struct Entry {
    door: Door,
    visitor: Visitor,
    is_admitted: AtomicBool,
}

impl Entry {
    /// Who has opened it.
    pub fn visitor(&self) -> Visitor {
        self.visitor
    }

    /// It has been shown what lets in.
    pub fn admit(&self) {
        if !self.is_admitted.swap(true, Ordering::Relaxed) {
            self.door.places().leave(&self.visitor);
        }
    }

    /// Was it?
    pub fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Relaxed)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.admit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_let_in_or_has_left_makes_room_for_the_next() {
        let door = Door::default();
        let wait = || door.wait(Visitor::at([10, 0, 0, 1].into()));
        let waiting: Vec<_> = std::iter::from_fn(wait).collect();
        assert_eq!(waiting.len(), MOST / 2, "of one source");
        waiting[0].admit();
        waiting[0].admit();
        assert!(waiting[0].is_admitted());
        let next = wait().expect("room for one");
        assert!(wait().is_none() && !next.is_admitted());
        drop(waiting);
        assert_eq!(std::iter::from_fn(wait).collect::<Vec<_>>().len(), MOST / 2 - 1);
    }
}

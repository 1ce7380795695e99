//! Folders that are filled, by several transfers perhaps. One gives a folder its permissions in the end: who has made it, or goes on with
//! it. They may keep the others out, so it gets them when the last has gone.

use rustix::fs::Stat;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// What a folder gets in the end.
pub type Dress = Box<dyn FnOnce(BorrowedFd<'_>) -> io::Result<()> + Send>;

/// Device and number.
type Node = (u64, u64);

/// The folders that one receiver fills.
#[derive(Clone, Default)]
pub struct Filled(Arc<Mutex<BTreeMap<Node, Filling>>>);

impl fmt::Debug for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filled").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Filling {
    transfers: usize,
    has_maker: bool,
    /// What its maker has left for it, who has gone before the others.
    dress: Option<Dress>,
}

/// One transfer in one folder, until it has left.
pub struct Place {
    filled: Filled,
    node: Node,
    is_maker: bool,
}

impl Filled {
    /// A transfer begins to fill the folder `found`; `makes` says that it has made it, or goes on with it.
    pub fn enter(&self, found: &Stat, makes: bool) -> Place {
        let node = (found.st_dev, found.st_ino);
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let filling = folders.entry(node).or_default();
        filling.transfers += 1;
        let is_maker = makes && !filling.has_maker;
        filling.has_maker |= is_maker;
        Place {
            filled: self.clone(),
            node,
            is_maker,
        }
    }

    /// Does any transfer fill one?
    #[cfg(test)]
    fn is_idle(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}

impl Place {
    /// Is this the transfer that dresses the folder?
    pub fn is_maker(&self) -> bool {
        self.is_maker
    }

    /// It is done with the folder behind `handle`, which gets `dress` now, or when the last has gone.
    ///
    /// # Errors
    /// When the folder does not take what it gets now.
    pub fn leave(self, handle: BorrowedFd<'_>, dress: Option<Dress>) -> io::Result<()> {
        let folders = self.filled.0.clone();
        let mut folders = folders.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(filling) = folders.get_mut(&self.node) else {
            return Ok(());
        };
        filling.dress = dress.or(filling.dress.take());
        let last = filling.transfers == 1;
        let now = filling.dress.take_if(|_| last);
        // Nobody comes in between.
        let dressed = now.map_or(Ok(()), |dress| dress(handle));
        drop(folders);
        dressed
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut folders = self.filled.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(filling) = folders.get_mut(&self.node) {
            filling.transfers -= 1;
            filling.has_maker &= !self.is_maker;
            if filling.transfers == 0 {
                folders.remove(&self.node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, fchmod, fstat};
    use std::os::fd::AsFd;

    #[test]
    fn a_folder_is_dressed_by_its_maker_when_the_last_has_gone() {
        let filled = Filled::default();
        let folder = tempfile::tempdir().expect("a folder");
        let handle = std::fs::File::open(folder.path()).expect("opened");
        let found = || fstat(&handle).expect("known");
        let mode = || found().st_mode & 0o777;
        let dress = |mode| -> Option<Dress> {
            Some(Box::new(move |handle| {
                Ok(fchmod(handle, Mode::from_raw_mode(mode))?)
            }))
        };
        let maker = filled.enter(&found(), true);
        let guest = filled.enter(&found(), true);
        assert!(maker.is_maker() && !guest.is_maker());
        let before = mode();
        maker.leave(handle.as_fd(), dress(0o500)).expect("left");
        assert_eq!(mode(), before, "somebody writes to it still");
        let second = filled.enter(&found(), true);
        assert!(second.is_maker(), "the first has gone");
        drop(second);
        guest.leave(handle.as_fd(), None).expect("left");
        assert_eq!(mode(), 0o500);
        assert!(filled.is_idle());
    }
}

//! Folders that are filled, by several transfers perhaps. One gives a folder its permissions in the end: who has made it, or goes on with
//! it, and somebody else only when the maker does not end. They may keep the others out, so it gets them when the last has gone.

use rustix::fs::{Stat, fstat};
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
    /// What another has left for it, in case that its maker does not end.
    spare: Option<Dress>,
}

impl Filling {
    /// One transfer goes. Was it the last?
    fn leave(&mut self, is_maker: bool) -> bool {
        self.transfers -= 1;
        self.has_maker &= !is_maker;
        self.transfers == 0
    }
}

/// One transfer in one folder, until it has left.
pub struct Place {
    filled: Filled,
    node: Node,
    is_maker: bool,
    has_left: bool,
}

impl Filled {
    /// A transfer begins to fill the folder behind `handle`; `makes` says of what is found there that it has made it, or goes on with it.
    /// Then the folder gets `open`, if that says so, before anybody else comes in, who could not write to it.
    ///
    /// # Errors
    /// When the folder cannot be looked at.
    pub fn enter(
        &self,
        handle: BorrowedFd<'_>,
        makes: impl FnOnce(&Stat) -> bool,
        open: impl FnOnce(BorrowedFd<'_>),
    ) -> io::Result<Place> {
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody dresses it in between.
        let found = fstat(handle)?;
        let makes = makes(&found);
        let node = node(&found);
        let filling = folders.entry(node).or_default();
        filling.transfers += 1;
        let is_maker = makes && !filling.has_maker;
        filling.has_maker |= is_maker;
        if is_maker {
            open(handle);
        }
        Ok(Place {
            filled: self.clone(),
            node,
            is_maker,
            has_left: false,
        })
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

    /// It has ended with the folder behind `handle`. What it has for it, the folder gets now, or when the last has gone; what another
    /// than its maker has, only if no maker has ended.
    ///
    /// # Errors
    /// When the folder does not take what this one has for it. What another has left is the other's, and has ended well for him.
    pub fn leave(self, handle: BorrowedFd<'_>, dress: Option<Dress>) -> io::Result<()> {
        self.go(handle, dress, true)
    }

    /// The same of one that was cut off: the folder gets what it has only if nobody has ended.
    pub fn abandon(self, handle: BorrowedFd<'_>, dress: Option<Dress>) {
        // Its own fails as nobody's: why the transfer has failed says more.
        let _ = self.go(handle, dress, false);
    }

    fn go(mut self, handle: BorrowedFd<'_>, dress: Option<Dress>, ends: bool) -> io::Result<()> {
        let folders = self.filled.0.clone();
        let mut folders = folders.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_left = true;
        let Some(filling) = folders.get_mut(&self.node) else {
            return Ok(());
        };
        let brings = dress.is_some();
        match (ends, self.is_maker) {
            (true, true) => filling.dress = dress.or(filling.dress.take()),
            (true, false) => filling.spare = dress.or(filling.spare.take()),
            (false, _) => filling.spare = filling.spare.take().or(dress),
        }
        let Some(last) = filling
            .leave(self.is_maker)
            .then(|| folders.remove(&self.node))
            .flatten()
        else {
            return Ok(());
        };
        let is_its_own = ends && brings && (self.is_maker || last.dress.is_none());
        let is_here = fstat(handle).is_ok_and(|found| node(&found) == self.node);
        let dress = last.dress.or(last.spare).filter(|_| is_here);
        // Nobody comes in between.
        let dressed = dress.map_or(Ok(()), |dress| dress(handle));
        drop(folders);
        match dressed {
            Err(error) if !is_its_own => {
                tracing::warn!(%error, "a folder does not take its permissions");
                Ok(())
            }
            dressed => dressed,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let mut folders = self.filled.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = folders
            .get_mut(&self.node)
            .is_some_and(|filling| filling.leave(self.is_maker));
        if is_last {
            folders.remove(&self.node);
        }
    }
}

fn node(found: &Stat) -> Node {
    (found.st_dev, found.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, fchmod};
    use std::fs::File;
    use std::os::fd::AsFd;

    struct Tried {
        filled: Filled,
        handle: File,
        _folder: tempfile::TempDir,
    }

    impl Tried {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            Tried {
                filled: Filled::default(),
                handle: File::open(folder.path()).expect("opened"),
                _folder: folder,
            }
        }

        fn mode(&self) -> u32 {
            fstat(&self.handle).expect("known").st_mode & 0o777
        }

        fn enter(&self) -> Place {
            self.filled
                .enter(self.handle.as_fd(), |_| true, |_| ())
                .expect("entered")
        }

        fn leave(&self, place: Place, mode: Option<u32>) -> io::Result<()> {
            let dress = mode.map(|mode| -> Dress {
                Box::new(move |handle| Ok(fchmod(handle, Mode::from_raw_mode(mode))?))
            });
            place.leave(self.handle.as_fd(), dress)
        }
    }

    #[test]
    fn a_folder_is_dressed_by_its_maker_when_the_last_has_gone() {
        let tried = Tried::new();
        let (maker, guest) = (tried.enter(), tried.enter());
        assert!(maker.is_maker() && !guest.is_maker());
        let before = tried.mode();
        tried.leave(maker, Some(0o500)).expect("left");
        assert_eq!(tried.mode(), before, "somebody writes to it still");
        let second = tried.enter();
        assert!(second.is_maker(), "the first has gone");
        drop(second);
        tried.leave(guest, Some(0o550)).expect("left");
        assert_eq!(tried.mode(), 0o500, "its maker's");
        assert!(tried.filled.is_idle());
    }

    #[test]
    fn who_makes_a_folder_opens_it_before_anybody_else_comes_in() {
        let tried = Tried::new();
        let opened = |open: u32| {
            let change = |handle: BorrowedFd<'_>| fchmod(handle, Mode::from_raw_mode(open)).expect("changed");
            let place = tried.filled.enter(tried.handle.as_fd(), |_| true, change);
            (place.expect("entered"), tried.mode())
        };
        let (_maker, mode) = opened(0o710);
        assert_eq!(mode, 0o710);
        let (_guest, mode) = opened(0o770);
        assert_eq!(mode, 0o710, "a guest opens nothing");
    }

    #[test]
    fn a_folder_whose_maker_is_cut_off_is_dressed_by_who_ends() {
        for maker_is_first in [true, false] {
            let tried = Tried::new();
            let (maker, guest) = (tried.enter(), tried.enter());
            let before = tried.mode();
            let mut both = [(maker, None), (guest, Some(0o550))];
            if !maker_is_first {
                both.reverse();
            }
            let [first, last] = both;
            tried.leave(first.0, first.1).expect("left");
            assert_eq!(tried.mode(), before, "somebody writes to it still");
            tried.leave(last.0, last.1).expect("left");
            assert_eq!(tried.mode(), 0o550);
        }
    }

    #[test]
    fn what_another_has_left_fails_nobody_else() {
        let tried = Tried::new();
        let fails = || Some::<Dress>(Box::new(|_| Err(io::ErrorKind::PermissionDenied.into())));
        let (maker, guest) = (tried.enter(), tried.enter());
        maker.leave(tried.handle.as_fd(), fails()).expect("not yet");
        tried.leave(guest, None).expect("the maker's");
        let maker = tried.enter();
        assert!(maker.leave(tried.handle.as_fd(), fails()).is_err(), "its own");
    }

    #[test]
    fn a_maker_that_is_cut_off_takes_nothing_from_who_ends() {
        for ends_first in [true, false] {
            let tried = Tried::new();
            let (maker, guest) = (tried.enter(), tried.enter());
            let close: Dress = Box::new(|handle| Ok(fchmod(handle, Mode::from_raw_mode(0o500))?));
            if ends_first {
                tried.leave(guest, Some(0o550)).expect("left");
                maker.abandon(tried.handle.as_fd(), Some(close));
            } else {
                maker.abandon(tried.handle.as_fd(), Some(close));
                tried.leave(guest, Some(0o550)).expect("left");
            }
            assert_eq!(tried.mode(), 0o550);
        }
    }

    #[test]
    fn many_that_end_at_once_leave_a_dressed_folder() {
        for _ in 0..200 {
            let tried = Tried::new();
            let places: Vec<_> = (0..4).map(|_| tried.enter()).collect();
            std::thread::scope(|scope| {
                for place in places {
                    scope.spawn(|| tried.leave(place, Some(0o550)).expect("left"));
                }
            });
            assert_eq!(tried.mode(), 0o550);
            assert!(tried.filled.is_idle());
        }
    }

    #[test]
    fn what_has_taken_the_folder_s_name_is_left_alone() {
        let (tried, other) = (Tried::new(), Tried::new());
        let before = other.mode();
        other.leave(tried.enter(), Some(0o500)).expect("left");
        assert_eq!(other.mode(), before);
    }
}

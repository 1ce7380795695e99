//! Paths whose local address this host has lost, on a socket that is bound to none. They go on from the address that the routing
//! table chooses now; the machine names them as before, and their peers follow as after a NAT's new binding.

use restp_base::machine::PathAddress;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Each path as the machine names it, and where it is now.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Are there any? As a rule there are none, and nothing is looked up.
    any: AtomicBool,
    paths: Mutex<Vec<(PathAddress, SocketAddr)>>,
}

impl Moved {
    pub(super) fn set(&self, paths: Vec<(PathAddress, SocketAddr)>) {
        self.any.store(!paths.is_empty(), Ordering::Release);
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }

    /// Where datagrams of `path` leave from.
    pub(super) fn source(&self, path: &PathAddress) -> IpAddr {
        let now = self.find(|(named, now)| (named == path).then_some(*now));
        now.unwrap_or(path.local).ip()
    }

    /// The name of the path that a datagram came on.
    pub(super) fn named(&self, came: PathAddress) -> PathAddress {
        let is_it = |named: &PathAddress, now: &SocketAddr| named.remote == came.remote && *now == came.local;
        self.find(|(named, now)| is_it(named, now).then_some(*named))
            .unwrap_or(came)
    }

    fn find<T>(&self, wanted: impl Fn(&(PathAddress, SocketAddr)) -> Option<T>) -> Option<T> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().find_map(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_has_moved_keeps_its_name() {
        let at = |host: u8| SocketAddr::from(([10, 0, 0, host], 9));
        let path = |local, remote| PathAddress {
            local: at(local),
            remote: at(remote),
        };
        let moved = Moved::default();
        assert_eq!(
            (moved.source(&path(1, 2)), moved.named(path(1, 2))),
            (at(1).ip(), path(1, 2))
        );
        moved.set(vec![(path(1, 2), at(3))]);
        assert_eq!(
            (moved.source(&path(1, 2)), moved.named(path(3, 2))),
            (at(3).ip(), path(1, 2))
        );
        assert_eq!(
            (moved.source(&path(1, 4)), moved.named(path(3, 4))),
            (at(1).ip(), path(3, 4))
        );
        moved.set(Vec::new());
        assert_eq!(moved.named(path(3, 2)), path(3, 2));
    }
}

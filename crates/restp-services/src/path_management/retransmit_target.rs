//! By which path what was lost leaves again, where several paths share the numbers (RFC 9260 §6.4.1; CMT §2.7; Iyengar, Amer,
//! Stewart, Comput. Commun. 30(4), 2007; SMT §3.4). Published policies break ties by chance; here the next path after the one that lost
//! the segment is taken, because nothing below the drivers is random.

use restp_base::time::Duration;

/// The policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetransmitTarget {
    /// Any path that has room (RTX-ASAP): the one that is asked first.
    #[default]
    Asap,
    /// The path that lost it, while that is active (RTX-SAME).
    Same,
    /// The same, unless its timer has run out since it answered last: then the next one (RFC 9260 §6.4.1).
    Alternate,
    /// The active path with the largest window (RTX-CWND).
    Window,
    /// The active path with the largest slow start threshold (RTX-SSTHRESH).
    Threshold,
    /// The active path with the least loss rate, which the user tells (RTX-LOSSRATE).
    LossRate,
    /// The active path with the shortest round trip, of equals the one with the larger window (SMT §3.4). What is only late
    /// leaves by another path than the one it is late on, where there is one.
    Fastest,
}

/// What a policy may know of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// It is used.
    pub active: bool,
    /// Its timer has run out, and nothing was answered since.
    pub failing: bool,
    /// Congestion window.
    pub window_bytes: u64,
    /// Slow start threshold.
    pub threshold_bytes: u64,
    /// Losses in a million packets, as the user tells.
    pub losses_per_million: u32,
    /// Smoothed round-trip time; none before there is one, which is the longest of all.
    pub smoothed_rtt: Option<Duration>,
}

impl RetransmitTarget {
    /// The policies that several paths may choose among, with the names they were published with.
    pub const ALL: [(&'static str, RetransmitTarget); 5] = [
        ("same", RetransmitTarget::Same),
        ("asap", RetransmitTarget::Asap),
        ("cwnd", RetransmitTarget::Window),
        ("ssthresh", RetransmitTarget::Threshold),
        ("lossrate", RetransmitTarget::LossRate),
    ];

    /// Where a segment leaves again that `lost_on` lost, or is late on; `None`: any path will do. Where none is active, it stays.
    pub fn choose(self, lost_on: usize, is_late: bool, all: &[Destination]) -> Option<usize> {
        let after = (lost_on + 1..all.len()).chain(0..lost_on);
        let active = |path: &usize| all[*path].active;
        let next = || after.clone().find(active).unwrap_or(lost_on);
        // The first of equals, beginning with the one that lost it.
        let best = |key: &dyn Fn(&Destination) -> u64| {
            let candidates = std::iter::once(lost_on).chain(after.clone()).filter(active);
            candidates
                .rev()
                .max_by_key(|path| key(&all[*path]))
                .unwrap_or(lost_on)
        };
        Some(match self {
            RetransmitTarget::Asap => return None,
            RetransmitTarget::Same if all[lost_on].active => lost_on,
            RetransmitTarget::Alternate if all[lost_on].active && !all[lost_on].failing => lost_on,
            RetransmitTarget::Same | RetransmitTarget::Alternate => next(),
            RetransmitTarget::Window => best(&|path| path.window_bytes),
            RetransmitTarget::Threshold => best(&|path| path.threshold_bytes),
            RetransmitTarget::Fastest => self.fastest(lost_on, is_late, all),
            RetransmitTarget::LossRate => best(&|path| u64::MAX - u64::from(path.losses_per_million)),
        })
    }

    fn fastest(self, lost_on: usize, is_late: bool, all: &[Destination]) -> usize {
        let speed = |path: &usize| {
            let rtt = all[*path].smoothed_rtt.unwrap_or(Duration::MAX);
            (rtt, std::cmp::Reverse(all[*path].window_bytes))
        };
        let others = (0..all.len()).filter(|path| *path != lost_on && all[*path].active);
        let Some(fastest) = others.min_by_key(speed) else {
            return lost_on;
        };
        let stays = !is_late && all[lost_on].active && speed(&lost_on) <= speed(&fastest);
        if stays { lost_on } else { fastest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(window_bytes: u64, threshold_bytes: u64, losses_per_million: u32) -> Destination {
        Destination {
            active: true,
            failing: false,
            window_bytes,
            threshold_bytes,
            losses_per_million,
            smoothed_rtt: None,
        }
    }

    #[test]
    fn each_policy_goes_by_its_own_measure() {
        let all = [
            destination(3000, 9000, 50_000),
            destination(6000, 5000, 20_000),
            destination(1500, 6000, 10_000),
        ];
        let chosen = RetransmitTarget::ALL.map(|(name, policy)| (name, policy.choose(0, false, &all)));
        let expected = [
            ("same", Some(0)),
            ("asap", None),
            ("cwnd", Some(1)),
            ("ssthresh", Some(0)),
            ("lossrate", Some(2)),
        ];
        assert_eq!(chosen, expected);
    }

    #[test]
    fn paths_that_are_not_active_get_nothing() {
        let mut all = [destination(3000, 3000, 0); 3];
        (all[0].active, all[0].window_bytes, all[0].threshold_bytes) = (false, 9000, 9000);
        for policy in [
            RetransmitTarget::Same,
            RetransmitTarget::Alternate,
            RetransmitTarget::Window,
            RetransmitTarget::Threshold,
            RetransmitTarget::LossRate,
            RetransmitTarget::Fastest,
        ] {
            assert_eq!(policy.choose(0, false, &all), Some(1), "{policy:?}");
            assert_eq!(policy.choose(2, false, &all), Some(2), "{policy:?}");
        }
        all.iter_mut().for_each(|path| path.active = false);
        assert_eq!(RetransmitTarget::Window.choose(1, false, &all), Some(1));
    }

    #[test]
    fn of_equals_the_path_that_lost_it_is_taken() {
        let all = [destination(3000, 3000, 7); 3];
        for policy in [RetransmitTarget::Window, RetransmitTarget::Threshold] {
            assert_eq!(
                [0, 1, 2].map(|path| policy.choose(path, false, &all)),
                [Some(0), Some(1), Some(2)]
            );
        }
    }

    #[test]
    fn after_a_timeout_an_alternate_is_tried() {
        let mut all = [destination(3000, 3000, 0); 2];
        assert_eq!(RetransmitTarget::Alternate.choose(0, false, &all), Some(0));
        all[0].failing = true;
        assert_eq!(RetransmitTarget::Alternate.choose(0, false, &all), Some(1));
        assert_eq!(RetransmitTarget::Same.choose(0, false, &all), Some(0));
    }

    #[test]
    fn the_fastest_path_takes_what_is_lost_and_another_what_is_late() {
        let mut all = [destination(3000, 3000, 0); 3];
        for (path, ms) in [20, 80, 50].into_iter().enumerate() {
            all[path].smoothed_rtt = Some(Duration::from_millis(ms));
        }
        let target = |is_late, all: &[Destination]| {
            [0, 1, 2].map(|lost_on| RetransmitTarget::Fastest.choose(lost_on, is_late, all))
        };
        assert_eq!(
            target(false, &all),
            [Some(0); 3],
            "where it is lost on the fastest, it stays"
        );
        assert_eq!(target(true, &all), [Some(2), Some(0), Some(0)]);
        (all[2].smoothed_rtt, all[2].window_bytes) = (all[0].smoothed_rtt, 4000);
        assert_eq!(
            target(true, &all)[1],
            Some(2),
            "of equals the one with the larger window"
        );
        all[0].active = false;
        all[2].smoothed_rtt = None;
        assert_eq!(target(false, &all), [Some(1), Some(1), Some(1)]);
        assert_eq!(RetransmitTarget::Fastest.choose(0, true, &all[..1]), Some(0));
    }
}

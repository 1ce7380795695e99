//! What happens next: events ordered by time, and those of one time in an order drawn for that time.
//!
//! Every source of events (a direction's oldest packet in flight, a host's timer) has at most one event here, so a
//! tournament fits better than a heap: a source's leaf is fixed, changing it replays one path to the root, and the
//! comparisons on the way are conditional moves that no branch predictor can get wrong.
//!
//! Packets that reach a router at one instant over several lines compete for the place in its queue. Any fixed order, of
//! insertion or of sources, favours the same ones every time and locks the others out (Floyd, Jacobson 1992, "On traffic
//! phase effects in packet-switched gateways"). A router has no such order: its ports are served as they happen to be
//! ready. Hence every source draws its rank anew for every instant. Timers of hosts come before arrivals of the same instant:
//! to take what arrives takes a moment.

use restp_base::time::Time;
use std::hint::select_unpredictable;

/// The next event of every source.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// A complete tree in which each node has four children, from its leaves up: those first, then the nodes above them,
    /// level by level, siblings in fours. A node holds the smallest of its children. The parent of node `n` is
    /// `leaves + n / 4`; and what the last four are the children of is nobody's child: `first`.
    fours: Vec<[u128; 4]>,
    first: u128,
    sources: usize,
    ties: Ties,
    /// Matches played so far: the cost of the tree, which a test bounds.
    #[cfg(test)]
    matches: u64,
}

/// The order of simultaneous events: a keyed hash of instant and source, so that an event more or less leaves the order
/// of all others as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ties {
    key: u64,
    /// The first source that is the timer of a host.
    timers: usize,
}

impl Ties {
    /// With the key `key`; sources from `timers` on are timers.
    pub(crate) const fn new(key: u64, timers: usize) -> Self {
        Ties { key, timers }
    }

    /// The rank of `source` at `at`: number `source` of the SplitMix64 sequence that the instant and the key seed
    /// (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
    pub(crate) const fn rank(self, source: usize, at: Time) -> u64 {
        let gamma = 0x9e37_79b9_7f4a_7c15;
        let mut bits = (at.as_nanos() ^ self.key).wrapping_add((source as u64 + 1).wrapping_mul(gamma));
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        bits >> 1 | ((source < self.timers) as u64) << 63
    }
}

/// Bits of a key that name the source; the 42 bits above are its rank.
const SOURCE_BITS: u32 = 22;
const SOURCES: u64 = 1 << SOURCE_BITS;
const IDLE: u128 = u128::MAX;

impl EventQueue {
    /// No events, from sources `0 .. sources`.
    pub(crate) fn new(sources: usize, ties: Ties) -> Self {
        let mut events = EventQueue {
            fours: Vec::new(),
            first: IDLE,
            sources: 0,
            ties,
            #[cfg(test)]
            matches: 0,
        };
        events.grow(sources);
        events
    }

    /// Adds sources behind the present ones.
    pub(crate) fn grow(&mut self, by: usize) {
        self.sources += by;
        assert!(
            self.sources < 1 << SOURCE_BITS,
            "a network of at most 4 million directions and hosts"
        );
        let old = self.leaves();
        let leaves = 4usize.pow(self.sources.next_power_of_two().ilog2().div_ceil(2));
        if leaves > old {
            let events = match old {
                1 => vec![self.first],
                _ => self.fours[..old / 4].concat(),
            };
            self.fours = vec![[IDLE; 4]; leaves / 3];
            for (source, key) in events.into_iter().enumerate() {
                self.replay(source, key);
            }
        }
    }

    /// The source had no event, and now has this one. Cheaper than [`EventQueue::set`]: most new events lie behind others,
    /// and nothing changes above the first match they do not win.
    pub(crate) fn add(&mut self, source: usize, at: Time) {
        let key = self.key(source, at);
        let (leaves, mut node) = (self.leaves(), source);
        debug_assert!(
            self.fours.get(node / 4).is_none_or(|four| four[node % 4] == IDLE),
            "source {source} has an event already"
        );
        let fours = self.fours.as_mut_slice();
        while let Some(four) = fours.get_mut(node / 4) {
            #[cfg(test)]
            {
                self.matches += 1;
            }
            let place = &mut four[node % 4];
            if key >= *place {
                return;
            }
            *place = key;
            node = leaves + node / 4;
        }
        self.first = self.first.min(key);
    }

    /// The source's event is now this one.
    pub(crate) fn set(&mut self, source: usize, at: Time) {
        self.replay(source, self.key(source, at));
    }

    /// The source has no event.
    pub(crate) fn clear(&mut self, source: usize) {
        self.replay(source, IDLE);
    }

    /// The earliest event: its time and source.
    pub(crate) fn first(&self) -> Option<(Time, usize)> {
        let key = self.first;
        let source = (key as u64 % SOURCES) as usize;
        (key != IDLE).then_some((Time::from_nanos((key >> 64) as u64), source))
    }

    fn leaves(&self) -> usize {
        3 * self.fours.len() + 1
    }

    fn replay(&mut self, source: usize, key: u128) {
        let (leaves, mut node, mut winner) = (self.leaves(), source, key);
        let fours = self.fours.as_mut_slice();
        while let Some(four) = fours.get_mut(node / 4) {
            #[cfg(test)]
            {
                self.matches += 1;
            }
            four[node % 4] = winner;
            let [a, b, c, d] = *four;
            winner = smaller(smaller(a, b), smaller(c, d));
            node = leaves + node / 4;
        }
        self.first = winner;
    }

    /// Time, then rank, then source.
    fn key(&self, source: usize, at: Time) -> u128 {
        let rank = self.ties.rank(source, at) & !(SOURCES - 1);
        u128::from(at.as_nanos()) << 64 | u128::from(rank | source as u64)
    }
}

#[inline]
fn smaller(a: u128, b: u128) -> u128 {
    select_unpredictable(a < b, a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;

    const TIES: Ties = Ties::new(7, usize::MAX);

    /// Every order of four sources comes about equally often over many instants: of 24 orders and 24,000 instants each
    /// about 1,000 times, with a standard deviation of 31.
    #[test]
    fn simultaneous_events_come_in_every_order() {
        let mut events = EventQueue::new(4, TIES);
        let mut seen = std::collections::BTreeMap::<Vec<usize>, u32>::new();
        for instant in 0..24_000 {
            (0..4).for_each(|source| events.set(source, Time::from_nanos(instant * 12_000)));
            let mut order = Vec::new();
            while let Some((_, source)) = events.first() {
                order.push(source);
                events.clear(source);
            }
            *seen.entry(order).or_default() += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|count| (850..1150).contains(count)), "{seen:?}");
    }

    #[test]
    fn a_timer_runs_out_before_anything_arrives_at_the_same_instant() {
        let mut events = EventQueue::new(3, Ties::new(7, 2));
        for instant in 0..100 {
            (0..3).for_each(|source| events.set(source, Time::from_nanos(instant)));
            assert_eq!(events.first(), Some((Time::from_nanos(instant), 2)));
        }
    }

    /// Packets on lines of one delay: each is taken at the end of one and put behind the others on the next.
    #[test]
    fn a_hop_costs_two_matches_more_where_there_are_four_times_the_sources() {
        for levels in [2, 4, 6] {
            let sources = 4usize.pow(levels as u32);
            let mut events = EventQueue::new(sources, TIES);
            (0..sources).for_each(|source| events.add(source, Time::from_nanos(source as u64)));
            events.matches = 0;
            for _ in 0..1000 {
                let (at, source) = events.first().expect("none is ever idle");
                events.clear(source);
                events.add(
                    source,
                    at + restp_base::time::Duration::from_nanos(sources as u64),
                );
            }
            assert!(
                events.matches <= 2 * 1000 * levels,
                "{} of {sources}",
                events.matches
            );
        }
    }

    #[test]
    fn growing_keeps_the_events() {
        let mut events = EventQueue::new(1, TIES);
        events.set(0, Time::from_nanos(7));
        events.grow(8);
        assert_eq!(events.first(), Some((Time::from_nanos(7), 0)));
        events.set(8, Time::from_nanos(6));
        assert_eq!(events.first(), Some((Time::from_nanos(6), 8)));
    }

    #[test]
    fn agrees_with_a_sorted_list_under_random_changes() {
        let mut random = Stream::named(1, "events");
        for sources in [1usize, 2, 5, 16, 33] {
            let mut events = EventQueue::new(sources, TIES);
            let mut list = vec![None; sources];
            for _ in 0..2000 {
                let source = random.below(sources as u64) as usize;
                if random.chance(0.2) {
                    events.clear(source);
                    list[source] = None;
                } else {
                    let at = Time::from_nanos(random.below(20));
                    if list[source].is_none() {
                        events.add(source, at);
                    } else {
                        events.set(source, at);
                    }
                    list[source] = Some((at, TIES.rank(source, at)));
                }
                let earliest = (0..sources)
                    .filter(|&n| list[n].is_some())
                    .min_by_key(|&n| list[n]);
                assert_eq!(events.first().map(|(_, source)| source), earliest);
            }
        }
    }
}

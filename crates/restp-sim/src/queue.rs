//! What happens next: events ordered by time, and those of one time by insertion.
//!
//! Every source of events (a direction's oldest packet in flight, a host's timer) has at most one event here, so a
//! tournament fits better than a heap: a source's leaf is fixed, changing it replays one path to the root, and the
//! comparisons on the way are conditional moves that no branch predictor can get wrong.

use restp_base::random::Stream;
use restp_base::time::Time;
use std::hint::select_unpredictable;

/// Orders simultaneous events; smaller was inserted earlier, unless ties are shuffled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64);

/// The next event of every source.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// A complete binary tree: the root at 1, the children of `n` at `2n` and `2n + 1`, the leaves last. A node holds
    /// the smaller of its children. Siblings lie side by side, node `n` at `pairs[n / 2][n % 2]`: one look per match.
    pairs: Vec<[u128; 2]>,
    sources: usize,
    turns: u64,
    shuffle: Option<Stream>,
}

/// Bits of a key that name the source. The 42 bits above count turns: enough for 4·10¹² events.
const SOURCE_BITS: u32 = 22;
const TURNS: u64 = 1 << (64 - SOURCE_BITS);
const IDLE: u128 = u128::MAX;

impl Agenda {
    /// No events, from sources `0 .. sources`.
    pub(crate) fn new(sources: usize) -> Self {
        let mut agenda = Agenda {
            pairs: vec![[IDLE; 2]],
            sources: 0,
            turns: 0,
            shuffle: None,
        };
        agenda.grow(sources);
        agenda
    }

    /// Adds sources behind the present ones.
    pub(crate) fn grow(&mut self, by: usize) {
        self.sources += by;
        assert!(
            self.sources < 1 << SOURCE_BITS,
            "a network of at most 4 million directions and hosts"
        );
        let (old, leaves) = (self.leaves(), self.sources.next_power_of_two());
        if leaves > old {
            let events: Vec<u128> = (old..2 * old).map(|leaf| self.key_of(leaf)).collect();
            self.pairs = vec![[IDLE; 2]; leaves];
            for (source, key) in events.into_iter().enumerate() {
                self.replay(source, key);
            }
        }
    }

    /// From now on simultaneous events come in an order drawn from `stream`.
    pub(crate) fn shuffle(&mut self, stream: Stream) {
        self.shuffle = Some(stream);
    }

    /// A place behind everything inserted so far.
    pub(crate) fn turn(&mut self) -> Turn {
        if let Some(stream) = &mut self.shuffle {
            return Turn(stream.below(TURNS));
        }
        self.turns += 1;
        Turn(self.turns)
    }

    /// The source had no event, and now has this one. Cheaper than [`Agenda::set`]: most new events lie behind others,
    /// and nothing changes above the first match they do not win.
    pub(crate) fn add(&mut self, source: usize, at: Time, turn: Turn) {
        let key = key(source, at, turn);
        let mut node = self.leaves() + source;
        debug_assert!(self.key_of(node) == IDLE, "source {source} has an event already");
        while node > 0 {
            let place = &mut self.pairs[node / 2][node % 2];
            if key >= *place {
                break;
            }
            *place = key;
            node /= 2;
        }
    }

    /// The source's event is now this one.
    pub(crate) fn set(&mut self, source: usize, at: Time, turn: Turn) {
        self.replay(source, key(source, at, turn));
    }

    /// The source has no event.
    pub(crate) fn clear(&mut self, source: usize) {
        self.replay(source, IDLE);
    }

    /// The earliest event: its time and source.
    pub(crate) fn first(&self) -> Option<(Time, usize)> {
        let key = self.key_of(1);
        let source = (key as u64 & ((1 << SOURCE_BITS) - 1)) as usize;
        (key != IDLE).then_some((Time::from_nanos((key >> 64) as u64), source))
    }

    fn leaves(&self) -> usize {
        self.pairs.len()
    }

    fn key_of(&self, node: usize) -> u128 {
        self.pairs[node / 2][node % 2]
    }

    fn replay(&mut self, source: usize, key: u128) {
        let mut node = self.leaves() + source;
        let mut winner = key;
        while node > 1 {
            let pair = &mut self.pairs[node / 2];
            let rival = pair[(node ^ 1) % 2];
            pair[node % 2] = winner;
            winner = select_unpredictable(rival < winner, rival, winner);
            node /= 2;
        }
        self.pairs[0][1] = winner;
    }
}

/// Time, then turn, then source.
fn key(source: usize, at: Time, turn: Turn) -> u128 {
    u128::from(at.as_nanos()) << 64 | u128::from(turn.0 << SOURCE_BITS | source as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_events_keep_their_insertion_order() {
        let mut agenda = Agenda::new(3);
        let turns = [agenda.turn(), agenda.turn(), agenda.turn()];
        for (source, turn) in [(0, turns[2]), (1, turns[0]), (2, turns[1])] {
            agenda.set(source, Time::from_nanos(5), turn);
        }
        let mut order = Vec::new();
        while let Some((_, source)) = agenda.first() {
            order.push(source);
            agenda.clear(source);
        }
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn growing_keeps_the_events() {
        let mut agenda = Agenda::new(1);
        let turn = agenda.turn();
        agenda.set(0, Time::from_nanos(7), turn);
        agenda.grow(8);
        assert_eq!(agenda.first(), Some((Time::from_nanos(7), 0)));
        let turn = agenda.turn();
        agenda.set(8, Time::from_nanos(6), turn);
        assert_eq!(agenda.first(), Some((Time::from_nanos(6), 8)));
    }

    #[test]
    fn agrees_with_a_sorted_list_under_random_changes() {
        let mut random = Stream::named(1, "agenda");
        for sources in [1usize, 2, 5, 16, 33] {
            let mut agenda = Agenda::new(sources);
            let mut list = vec![None; sources];
            for _ in 0..2000 {
                let source = random.below(sources as u64) as usize;
                if random.chance(0.2) {
                    agenda.clear(source);
                    list[source] = None;
                } else {
                    let (at, turn) = (Time::from_nanos(random.below(20)), agenda.turn());
                    if list[source].is_none() {
                        agenda.add(source, at, turn);
                    } else {
                        agenda.set(source, at, turn);
                    }
                    list[source] = Some((at, turn));
                }
                let earliest = (0..sources)
                    .filter(|&n| list[n].is_some())
                    .min_by_key(|&n| list[n]);
                assert_eq!(agenda.first().map(|(_, source)| source), earliest);
            }
        }
    }
}

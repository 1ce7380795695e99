//! Turns of sources. A keyed hash of its address and port gives each source a place in a ring. While too much arrives, the ring
//! admits one arc at a time, with all that its sources send; the next turn is that of the arc behind it. The last round tells how
//! many places fit into an arc. A turn that brings too much ends at once, and nobody is admitted for the rest of its time. So each
//! source has its turn in each round, whatever others send, and a peer that retransmits its request more often than once a turn
//! meets it. If chance decided for each datagram instead, it would be kept out for most of a flood.
//!
//! Memory and time do not depend on the number of sources: counters are kept for places, and a datagram touches one of them.

use restp_base::time::{Duration, Time};

/// How long a turn is.
const TURN: Duration = Duration::from_millis(250);

/// The shortest time that a rate is taken from.
const SHORTEST: Duration = Duration::from_millis(1);

/// Datagrams that may come in with a turn, 16 000 a second: an eighth of a processor for what each costs (about 7 µs with its
/// answer), and far above what arrives where nobody means harm.
const ADMITTED: u64 = 4_000;

/// A turn that brings so many ends before its time, and nobody comes in until it could have brought them.
const TOO_MANY: u64 = ADMITTED + ADMITTED / 4;
const WITH_REST: Duration = Duration::from_nanos(TURN.as_nanos() * TOO_MANY / ADMITTED);

/// Places of the ring.
pub(super) const PLACES: u32 = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 10;

/// The shortest arc, so that a round has 64 turns at most even where somebody floods each of them.
const LEAST: u32 = PLACES / 64;

/// Bits of a hash below those that are its place.
pub(super) const BELOW: u32 = u32::BITS - PLACE_BITS;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arc {
    /// The place where it begins.
    pub(super) begin: u32,
    /// In places; [`PLACES`] is everybody, 0 nobody.
    pub(super) length: u32,
}

impl Arc {
    /// Is it the turn of the sources at `place`?
    fn holds(self, place: u32) -> bool {
        place.wrapping_sub(self.begin) & (PLACES - 1) < self.length
    }

    fn places(self) -> impl Iterator<Item = usize> {
        (self.begin..self.begin + self.length).map(|place| (place & (PLACES - 1)) as usize)
    }
}

/// Turns of one kind of datagrams.
#[derive(Debug)]
pub(super) struct Ring {
    arc: Arc,
    since: Time,
    until: Time,
    /// Datagrams of this turn, all and at each place.
    seen: u64,
    seen_at: Vec<u64>,
    /// What the last turn of each place brought, or would have in its time.
    brought: Vec<u64>,
}

impl Ring {
    pub(super) fn new() -> Self {
        Ring {
            arc: Arc {
                begin: 0,
                length: PLACES,
            },
            since: Time::ZERO,
            until: Time::ZERO,
            seen: 0,
            seen_at: vec![0; PLACES as usize],
            brought: vec![0; PLACES as usize],
        }
    }

    /// One whose turn is that of `arc`.
    #[cfg(test)]
    pub(super) fn of(arc: Arc) -> Self {
        Ring { arc, ..Ring::new() }
    }

    pub(super) fn arc(&self) -> Arc {
        self.arc
    }

    /// Does everybody come in?
    pub(super) fn is_open(&self) -> bool {
        self.arc.length == PLACES
    }

    /// A datagram whose source has this hash arrived. Does it come in?
    pub(super) fn admits(&mut self, hash: u32) -> bool {
        let place = hash >> BELOW;
        let holds = self.arc.holds(place);
        if holds {
            self.seen += 1;
            self.seen_at[place as usize] += 1;
        }
        holds
    }

    /// Ends the turn when its time is over, or as soon as it brought too many. True when it is the turn of others, or of nobody.
    pub(super) fn turn(&mut self, now: Time) -> bool {
        let is_over = now >= self.until;
        if !is_over && self.seen < TOO_MANY {
            return false;
        }
        let before = self.arc;
        if !self.is_open() || self.seen > 0 {
            self.count(now);
        }
        self.arc.begin = (before.begin + before.length) & (PLACES - 1);
        self.arc.length = if is_over { self.fitting() } else { 0 };
        self.until = if is_over {
            now + TURN
        } else {
            self.since + WITH_REST
        };
        self.since = now;
        self.arc != before
    }

    /// Keeps what the turn has brought.
    fn count(&mut self, now: Time) {
        let passed = now.since(self.since).max(SHORTEST);
        let expected: u64 = self.arc.places().map(|place| self.brought[place]).sum();
        if expected > ADMITTED / 4 && self.seen < expected / 2 {
            // The flood is over, or pauses: nobody waits for what others do not send.
            self.brought.iter_mut().for_each(|brought| *brought /= 2);
        }
        for place in self.arc.places() {
            let seen = std::mem::take(&mut self.seen_at[place]);
            self.brought[place] = seen * TURN.as_nanos() / passed.as_nanos();
        }
        self.seen = 0;
    }

    /// How many places from the begin on bring no more than what is admitted.
    fn fitting(&self) -> u32 {
        let all = Arc {
            length: PLACES,
            ..self.arc
        };
        let sums = all.places().scan(0, |sum, place| {
            *sum += self.brought[place];
            Some(*sum)
        });
        let fitting = sums.take_while(|sum| *sum <= ADMITTED).count();
        u32::try_from(fitting).unwrap_or(PLACES).max(LEAST)
    }

    /// When a turn ends of which nobody may have come.
    pub(super) fn ends(&self) -> Option<Time> {
        (!self.is_open()).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;

    const STEP: Duration = Duration::from_millis(1);

    /// Runs a flood of `each_ms` datagrams from sources that `hash` gives, from `begin` to `end` ms: those that came in.
    fn flood(
        ring: &mut Ring,
        span: std::ops::Range<u64>,
        each_ms: u64,
        hash: &mut dyn FnMut() -> u32,
    ) -> u64 {
        let mut came_in = 0;
        for ms in span {
            ring.turn(Time::ZERO + STEP * ms);
            came_in += (0..each_ms).filter(|_| ring.admits(hash())).count() as u64;
        }
        came_in
    }

    #[test]
    fn who_repeats_meets_his_turn_in_every_round_of_a_flood_of_invented_sources() {
        let mut dice = Stream::named(1, "ring");
        let mut ring = Ring::new();
        flood(&mut ring, 0..2_000, 100, &mut || dice.bits() as u32);
        // 100 000 a second are six and a quarter turns of 16 000.
        let round = 8 * 250;
        let mut hosts: Vec<(u32, Vec<u64>)> = (0..500).map(|_| (dice.bits() as u32, Vec::new())).collect();
        let mut came_in = 0;
        for ms in 2_000..12_000 {
            came_in += flood(&mut ring, ms..ms + 1, 100, &mut || dice.bits() as u32);
            if ms % 200 == 0 {
                let met = |(hash, _): &&mut (u32, Vec<u64>)| ring.arc.holds(*hash >> BELOW);
                hosts.iter_mut().filter(met).for_each(|(_, met)| met.push(ms));
            }
        }
        assert!((14_000..=18_000).contains(&(came_in / 10)), "{came_in} in 10 s");
        for (hash, met) in hosts {
            let waits = std::iter::once(&2_000)
                .chain(&met)
                .zip(met.iter().chain([&12_000]));
            let longest = waits.map(|(from, to)| to - from).max();
            assert!(longest <= Some(round), "{hash:x}: {longest:?} of {met:?}");
        }
    }

    #[test]
    fn a_source_that_sends_all_takes_nobodys_turn_but_its_neighbours() {
        let mut ring = Ring::new();
        let mut dice = Stream::named(2, "ring");
        let hosts: Vec<u32> = (0..500).map(|_| dice.bits() as u32).collect();
        let mut met = vec![0_u64; hosts.len()];
        let mut came_in = 0;
        for ms in 0..12_000 {
            came_in += flood(&mut ring, ms..ms + 1, 100, &mut || 0x7777_7777);
            if ms >= 3_000 && ms % 200 == 0 {
                let holds = |(host, _): &(&u32, &mut u64)| ring.arc.holds(**host >> BELOW);
                hosts
                    .iter()
                    .zip(&mut met)
                    .filter(holds)
                    .for_each(|(_, met)| *met += 1);
            }
        }
        assert!(came_in / 12 <= 17_000, "{came_in} in 12 s");
        let seldom = met.iter().filter(|met| **met < 3).count();
        assert!(seldom <= hosts.len() / 25, "{seldom} in 9 s");
    }

    #[test]
    fn who_floods_each_turn_as_it_comes_neither_gets_more_in_nor_holds_the_ring() {
        let mut ring = Ring::new();
        let mut dice = Stream::named(4, "ring");
        let mut last_turn = vec![0; PLACES as usize];
        let mut came_in = 0;
        for ms in 0..60_000 {
            // All of its sources are of those whose turn it is.
            let Arc { begin, length } = ring.arc();
            let mut hash = || ((begin + dice.below(length.max(1).into()) as u32) & (PLACES - 1)) << BELOW;
            came_in += flood(&mut ring, ms..ms + 1, 100, &mut hash);
            for place in ring.arc.places() {
                let waited = ms - std::mem::replace(&mut last_turn[place], ms);
                assert!(waited <= 65 * 313, "{waited} ms at {ms}");
            }
        }
        assert!(came_in / 60 <= 17_000, "{came_in} in a minute");
    }

    #[test]
    fn what_is_admitted_is_bounded_and_the_end_of_a_flood_opens_the_ring() {
        let mut dice = Stream::named(3, "ring");
        let mut ring = Ring::new();
        assert!(flood(&mut ring, 0..1_000, 15, &mut || dice.bits() as u32) == 15_000 && ring.is_open());
        assert_eq!(ring.ends(), None);
        let came_in = flood(&mut ring, 1_000..3_000, 10_000, &mut || dice.bits() as u32);
        assert!(came_in <= 4 * 16_000, "{came_in}");
        let some = flood(&mut ring, 3_000..3_500, 10_000, &mut || dice.bits() as u32);
        assert!(some > 0 && ring.ends().is_some());
        flood(&mut ring, 3_500..6_500, 0, &mut || 0);
        assert!(ring.is_open());
    }
}

//! Negative acknowledgement, receiver side: which one gap an acknowledgement names (ResTP §3.5.9, OP-53; TC §2.2.3
//! with the rules of RFC 1106 §3 left open). Numbers are segments or bytes, as the caller counts.

use restp_base::ranges::Ranges;
use std::collections::VecDeque;
use std::ops::Range;

/// How sure a sender may be that it hears of every gap (TC §3.2.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakMode {
    /// Each gap is named once: a lost acknowledgement takes the news with it.
    Unreliable,
    /// Each gap is named several times in a row: what was not named is taken for received.
    QuasiReliable,
}

impl NakMode {
    /// Every mode with its name.
    pub const ALL: [(&'static str, NakMode); 2] = [
        ("unreliable", NakMode::Unreliable),
        ("quasi-reliable", NakMode::QuasiReliable),
    ];
}

/// Which acknowledgements name a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakEmission {
    /// Those that follow the gap's discovery, as many as the mode says.
    Gap,
    /// All of them while a gap is open, cycling from the lowest.
    EveryAck,
}

impl NakEmission {
    /// Every emission with its name.
    pub const ALL: [(&'static str, NakEmission); 2] =
        [("gap", NakEmission::Gap), ("every-ack", NakEmission::EveryAck)];
}

/// Mode and emission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NakParameters {
    /// Once or several times. Default unreliable: TC §2.2.3 calls a NAK "not repetitious".
    pub mode: NakMode,
    /// How often a gap is named in quasi-reliable mode. Default 3, as often as a SACK block (RFC 2018 §3).
    pub copies: u8,
    /// Default gap.
    pub emission: NakEmission,
}

impl Default for NakParameters {
    fn default() -> Self {
        NakParameters {
            mode: NakMode::Unreliable,
            copies: 3,
            emission: NakEmission::Gap,
        }
    }
}

/// Chooses the gap of each acknowledgement.
#[derive(Debug)]
pub struct NakReporter {
    parameters: NakParameters,
    /// Longest gap one report can name.
    most: u64,
    /// Gaps below this number are queued or done with.
    looked_up_to: u64,
    /// Gaps never named, the lowest first.
    fresh: VecDeque<Range<u64>>,
    /// Gaps named, the oldest first, with the copies that remain.
    named: VecDeque<(Range<u64>, u8)>,
    /// Where the cycle goes on.
    cycle: u64,
}

impl NakReporter {
    /// Nothing is missing below `next`; a report names at most `most` numbers.
    pub fn new(parameters: NakParameters, most: u64, next: u64) -> Self {
        NakReporter {
            parameters,
            most,
            looked_up_to: next,
            fresh: VecDeque::new(),
            named: VecDeque::new(),
            cycle: next,
        }
    }

    /// The gap that the acknowledgement with pointer `next` names, given what has arrived beyond it.
    pub fn next_report(&mut self, next: u64, received: &Ranges) -> Option<Range<u64>> {
        match self.parameters.emission {
            NakEmission::Gap => self.next_in_queue(next, received),
            NakEmission::EveryAck => self.next_in_cycle(next, received),
        }
    }

    /// A gap is what an arrival above everything earlier leaves open; one inside a gap makes no new one.
    fn next_in_queue(&mut self, next: u64, received: &Ranges) -> Option<Range<u64>> {
        let from = self.looked_up_to.max(next);
        let most = self.most;
        let pieces = received.holes(from).flat_map(|gap| {
            let starts = (gap.start..gap.end).step_by(most as usize);
            starts.map(move |start| start..gap.end.min(start + most))
        });
        self.fresh.extend(pieces);
        self.looked_up_to = received.last().map_or(from, |last| last.end.max(from));

        while let Some(gap) = self.fresh.pop_front() {
            if let Some(open) = open_part(&gap, next, received) {
                if self.copies() > 1 {
                    self.named.push_back((gap, self.copies() - 1));
                }
                return Some(open);
            }
        }
        while let Some((gap, left)) = self.named.front_mut() {
            let open = open_part(gap, next, received);
            *left = if open.is_some() { *left - 1 } else { 0 };
            if *left == 0 {
                self.named.pop_front();
            }
            if open.is_some() {
                return open;
            }
        }
        None
    }

    fn next_in_cycle(&mut self, next: u64, received: &Ranges) -> Option<Range<u64>> {
        let after = received.holes(next.max(self.cycle)).next();
        let gap = after.or_else(|| received.holes(next).next())?;
        let end = gap.end.min(gap.start + self.most);
        self.cycle = end;
        Some(gap.start..end)
    }

    fn copies(&self) -> u8 {
        match self.parameters.mode {
            NakMode::Unreliable => 1,
            NakMode::QuasiReliable => self.parameters.copies,
        }
    }
}

/// The lowest part of `gap` that is still missing.
fn open_part(gap: &Range<u64>, next: u64, received: &Ranges) -> Option<Range<u64>> {
    let hole = received.holes(next.max(gap.start)).next()?;
    (hole.start < gap.end).then(|| hole.start..hole.end.min(gap.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1460;

    fn reporter(mode: NakMode, emission: NakEmission) -> NakReporter {
        let parameters = NakParameters {
            mode,
            emission,
            ..NakParameters::default()
        };
        NakReporter::new(parameters, 255 * MSS, 0)
    }

    /// Segments 0 to 5 of 1460 bytes; 1, 3 and 4 are lost (TC §2.2.5). What each acknowledgement names.
    fn after_arrivals(reporter: &mut NakReporter, arrivals: &[u64]) -> Vec<Option<Range<u64>>> {
        let mut received = Ranges::new();
        let mut next = MSS;
        let named = arrivals.iter().map(|segment| {
            received.insert(segment * MSS..(segment + 1) * MSS);
            if received.contains(next) {
                next = received.first().unwrap().end;
                received.remove_below(next);
            }
            reporter.next_report(next, &received)
        });
        named.collect()
    }
    const FIRST: Option<Range<u64>> = Some(1460..2920);
    const SECOND: Option<Range<u64>> = Some(4380..7300);

    #[test]
    fn each_gap_of_the_worked_example_is_named_once() {
        let mut once = reporter(NakMode::Unreliable, NakEmission::Gap);
        assert_eq!(
            after_arrivals(&mut once, &[2, 5, 6, 7]),
            [FIRST, SECOND, None, None]
        );
    }

    #[test]
    fn a_quasi_reliable_receiver_names_new_gaps_first_and_then_the_oldest_again() {
        let mut thrice = reporter(NakMode::QuasiReliable, NakEmission::Gap);
        assert_eq!(
            after_arrivals(&mut thrice, &[2, 5, 6, 7, 8, 9, 10]),
            [FIRST, SECOND, FIRST, FIRST, SECOND, SECOND, None]
        );
    }

    #[test]
    fn copies_of_a_repaired_gap_are_dropped_and_what_is_left_of_one_is_named() {
        let mut thrice = reporter(NakMode::QuasiReliable, NakEmission::Gap);
        assert_eq!(
            after_arrivals(&mut thrice, &[2, 5, 1, 3, 6]),
            [FIRST, SECOND, SECOND, Some(5840..7300), None]
        );
    }

    #[test]
    fn a_gap_that_is_filled_before_any_report_is_never_named() {
        let mut once = reporter(NakMode::Unreliable, NakEmission::Gap);
        let mut received = Ranges::new();
        received.insert(2920..4380);
        received.insert(7300..8760);
        received.insert(1460..2920);
        received.remove_below(4380);
        assert_eq!(once.next_report(4380, &received), Some(4380..7300));
    }

    #[test]
    fn on_every_acknowledgement_the_open_gaps_take_turns() {
        let mut cycling = reporter(NakMode::Unreliable, NakEmission::EveryAck);
        assert_eq!(
            after_arrivals(&mut cycling, &[2, 5, 6, 7, 8, 1]),
            [FIRST, SECOND, FIRST, SECOND, FIRST, SECOND]
        );
    }

    #[test]
    fn a_gap_that_one_report_cannot_name_takes_several() {
        for emission in [NakEmission::Gap, NakEmission::EveryAck] {
            let mut reporter = reporter(NakMode::Unreliable, emission);
            let mut received = Ranges::new();
            received.insert(600 * MSS..601 * MSS);
            let segments: Vec<_> = (0..3)
                .map_while(|_| reporter.next_report(0, &received))
                .map(|gap| (gap.start / MSS, (gap.end - gap.start) / MSS))
                .collect();
            assert_eq!(segments, [(0, 255), (255, 255), (510, 90)], "{emission:?}");
        }
    }
}

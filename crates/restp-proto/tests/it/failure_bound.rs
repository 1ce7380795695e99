//! How long a failure of one of two paths lasts, as docs/services/path-management.md says it: a law over many seeds, read
//! from the trace (ResTP §3.3.2, §3.4; OP-54). Both paths have a rate and a queue, which bulk transfers fill and overflow.

use crate::common::lines::{Dead, MS, SPREAD, secs};
use crate::common::links::{Link, client, link, over};
use crate::common::*;
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, PathState, Read};
use restp_base::machine::{Event, Input, Machine};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_proto::wire::Tail;
use std::collections::BTreeSet;

/// What a story consists of.
#[derive(Clone, Debug)]
struct Case {
    preset: &'static str,
    set: Vec<(&'static str, &'static str)>,
    links: [Link; 2],
    /// Sides whose packets on the first path vanish.
    ways: &'static [usize],
    /// Milliseconds between messages; none: as much as it takes.
    gap: Option<u64>,
    cut: Duration,
    notice: bool,
}

impl Case {
    fn of(seed: u64) -> Case {
        let mut chance = Stream::named(seed, "failure");
        let spread: &[(&str, &str)] = &[SPREAD, &[("window", "1024 segments")]].concat();
        let standby = &[
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
            ("connection", "three-way"),
            ("pacing", "on"),
            ("window", "1024 segments"),
        ];
        let (preset, set): (_, &[_]) = match chance.below(3) {
            0 => ("geo-spread", spread),
            1 => ("mp-opt", standby),
            _ => ("multipath", &[]),
        };
        // Thin traffic takes the shorter path, which is the one that dies.
        let first = chance.below(100) + 2;
        let second = first + chance.below(100);
        Case {
            preset,
            set: set.to_vec(),
            links: [first, second].map(|rtt| link(chance.below(15) + 5, rtt)),
            ways: [&[0usize, 1][..], &[0], &[1]][chance.below(3) as usize],
            gap: chance.chance(0.5).then(|| chance.below(30) + 1),
            cut: secs(1) + Duration::from_micros(chance.below(200_000)),
            notice: chance.chance(0.3),
        }
    }
}

/// Number of the association that a packet of the opener carries.
fn number(seen: &Seen) -> Option<u32> {
    let mapping = seen.header.dss?.mapping?;
    (seen.from == 0 && seen.is_data()).then_some(mapping.dsn)
}

/// Is `a` at or after `b`, as numbers that wrap?
fn reaches(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

/// Of the first path: when the first packet left that no acknowledgement of that path answered, and how long the answer to
/// the one before it took.
fn first_unanswered(pair: &Pair, delay: Duration) -> Option<(Time, Duration)> {
    let on_first = |seen: &&Seen| [seen.path.local, seen.path.remote].contains(&client(1));
    let answers = pair
        .log
        .iter()
        .filter(on_first)
        .filter(|seen| seen.from == 1 && seen.verdict == Verdict::Pass);
    // One past the highest number that is known to have arrived.
    let (mut pointer, mut at, mut said) = (0, Time::ZERO, (0, 0));
    for answer in answers {
        let cumulative = answer.header.acknowledgement.expect("an acknowledgement");
        let highest = match &answer.header.tail {
            Tail::Sack(blocks) => {
                let ends = blocks.iter().map(|(_, right)| right.wrapping_add(1));
                ends.fold(
                    cumulative,
                    |highest, end| if reaches(end, highest) { end } else { highest },
                )
            }
            _ => cumulative,
        };
        if at == Time::ZERO || (highest, cumulative) != said && reaches(highest, pointer) {
            (pointer, at) = (highest, answer.at + delay);
        }
        said = (highest, cumulative);
    }
    let data = || {
        pair.log
            .iter()
            .filter(|seen| seen.from == 0 && seen.is_data())
            .filter(on_first)
    };
    // The last transmission of what was answered: a retransmission may have been answered after later numbers.
    let answered = |seen: &&Seen| {
        seen.at + delay * 2 <= at && !reaches(seen.header.sequence.expect("numbered"), pointer)
    };
    let last = data().filter(answered).map(|seen| seen.at).next_back()?;
    let first = data().find(|seen| seen.at > last)?;
    Some((first.at, at.since(last)))
}

/// What came of a case.
struct Outcome {
    /// When the other path has to carry everything: max(2 RTT, 30 ms) from the first unanswered packet, or when told.
    bound: Time,
    /// Segments the dead path carried and did not get an answer to.
    unanswered: usize,
    /// When what the first path had carried, and what no path had, left first on the second.
    again: Option<Time>,
    new: Option<Time>,
    /// When each message was written and read.
    messages: Vec<(Time, Time)>,
}

fn run(case: &Case) -> Outcome {
    let (mut pair, flow) = over(&case.links, case.preset, &case.set);
    let dead = Dead::default();
    let (switch, mut rated) = (
        dead.clone(),
        std::mem::replace(&mut pair.rule, Box::new(|_| Verdict::Pass)),
    );
    pair.rule = Box::new(move |seen| {
        let on_first = [seen.path.local, seen.path.remote].contains(&client(1));
        if on_first && switch.borrow().contains(&(client(1), seen.from)) {
            Verdict::Drop
        } else {
            rated(seen)
        }
    });
    pair.run_for(MS * 400);
    let flows = (flow, pair.accepted().expect("accepted"));
    let mut both = Applications::default();
    both.run(&mut pair, flows, case.gap, Time::ZERO + case.cut);
    let suspicion = Event::Path(flow, lines::line(&pair, 1), PathState::Suspect);
    assert!(!pair.events[0].contains(&suspicion), "a healthy path: {case:?}");
    let cut = pair.now;
    dead.borrow_mut()
        .extend(case.ways.iter().map(|from| (client(1), *from)));
    if case.notice {
        let local = client(1); // the other host has one address for both paths, and is told nothing
        pair.ends[0].handle(cut, Input::PathNotice { local, up: false });
    }
    both.run(&mut pair, flows, case.gap, cut + secs(1));
    let stats = pair.ends[0].stats(flow).expect("alive");
    let of_first = stats.paths.iter().find(|path| path.path.local == client(1));
    let smoothed = of_first.and_then(|path| path.srtt).expect("measured");
    let (from, last) = first_unanswered(&pair, case.links[0].rtt / 2).unwrap_or((cut, Duration::ZERO));
    let on = |n: usize| {
        let data = pair.log.iter().filter(move |seen| seen.path.local == client(n));
        data.filter_map(|seen| Some((seen.at, number(seen)?)))
    };
    let carried: BTreeSet<u32> = on(1).map(|(_, number)| number).collect();
    let since = if case.notice {
        from.min(cut - smoothed)
    } else {
        from
    };
    let unanswered: BTreeSet<u32> = on(1)
        .filter(|(at, _)| *at >= since)
        .map(|(_, number)| number)
        .collect();
    let mut known: BTreeSet<u32> = on(2)
        .filter(|(at, _)| *at < cut)
        .map(|(_, number)| number)
        .collect();
    let (mut again, mut new) = (None, None);
    for (at, number) in on(2).filter(|(at, _)| *at >= cut) {
        let first = known.insert(number);
        if unanswered.contains(&number) || first && carried.contains(&number) {
            again.get_or_insert(at);
        } else if first {
            new.get_or_insert(at);
        }
    }
    let unanswered = unanswered.len();
    // The round trip: smoothed, or that of the last answer if it was longer.
    let silence = (smoothed.max(last) * 2).max(MS * 30);
    both.has_finished = true;
    both.run(&mut pair, flows, None, cut + secs(10));
    assert_eq!(both.read, both.written, "nothing is lost: {case:?}");
    Outcome {
        bound: if case.notice { cut } else { from + silence },
        unanswered,
        again,
        new,
        messages: both.messages,
    }
}

/// A writer and a reader.
#[derive(Default)]
struct Applications {
    written: usize,
    read: usize,
    has_finished: bool,
    next: Time,
    /// When each message was written, and read.
    messages: Vec<(Time, Time)>,
}

/// Bytes of a message, and of one piece of a bulk transfer.
const MESSAGE: usize = 500;
const PIECE: usize = 5600;

impl Applications {
    /// Byte `at` of the stream.
    fn byte(at: usize) -> u8 {
        (at / 97) as u8
    }

    /// Until `until` a message leaves every `gap` milliseconds, or as much as goes; what arrives is read.
    fn run(&mut self, pair: &mut Pair, flows: (FlowId, FlowId), gap: Option<u64>, until: Time) {
        while pair.now < until {
            let size = if gap.is_some() { MESSAGE } else { PIECE };
            while !self.has_finished && (gap.is_none() || self.next <= pair.now) {
                let data: Bytes = (self.written..self.written + size).map(Self::byte).collect();
                if pair.ends[0].write(pair.now, flows.0, data).is_err() {
                    break;
                }
                self.written += size;
                if let Some(gap) = gap {
                    self.next = pair.now + MS * gap;
                    self.messages.push((pair.now, Time::MAX));
                }
            }
            pair.run_until((pair.now + MS).min(until));
            while let Read::Data(data) = pair.ends[1].read(pair.now, flows.1) {
                for byte in data {
                    assert_eq!(byte, Self::byte(self.read), "in order, and once");
                    self.read += 1;
                }
            }
            let whole = self.messages.iter_mut().take(self.read / MESSAGE);
            whole.for_each(|(_, read)| *read = pair.now.min(*read));
        }
    }
}

/// What the dead path carried leaves on the other within the bound, whatever is on that one.
#[test]
fn the_other_path_takes_over_within_two_round_trips_or_at_once_when_told() {
    for seed in 0..SEEDS {
        let case = Case::of(seed);
        let outcome = run(&case);
        let taken = outcome.again.is_some_and(|at| at <= outcome.bound);
        // Told, and everything that was on its way got its answer all the same: or there was nothing.
        let idle = case.notice && outcome.unanswered == 0;
        assert!(
            taken || idle,
            "seed {seed}: {:?} > {:?}: {case:?}",
            outcome.again,
            outcome.bound
        );
        // New data does not wait for retransmissions where the other path has room for both.
        let few = outcome.unanswered < FEW;
        let standby = case.preset == "mp-opt";
        if case.gap.is_some() && few || case.gap.is_none() && standby {
            let written = MS * case.gap.unwrap_or(0) + MS;
            let late = outcome.new.is_none_or(|at| at > outcome.bound + written);
            assert!(
                !late,
                "seed {seed}: {:?} > {:?}: {case:?}",
                outcome.new, outcome.bound
            );
        }
        if case.gap.is_some() && few {
            // One delay of the other path, and its rate; the reader looks once per millisecond.
            let way = case.links[1].rtt / 2 + case.links[1].rate.transmission_time(600 * FEW as u64) + MS;
            for (written, read) in outcome
                .messages
                .iter()
                .filter(|(written, _)| *written <= outcome.bound)
            {
                assert!(
                    *read <= outcome.bound + way,
                    "seed {seed}: {written:?} {read:?} {:?}: {case:?}",
                    outcome.bound
                );
            }
        }
    }
}

/// Cases.
const SEEDS: u64 = 100;
/// So many small messages go at once into any window.
const FEW: usize = 20;

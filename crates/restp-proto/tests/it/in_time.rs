//! Stories of messages that are of use for a while, over several paths that share their numbers (`reliability = partial`): what a path
//! loses leaves again by any, what would come too late is given up once for all paths, and a path that dies holds up nothing.

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_proto::{Acceptance, EndpointConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

const DEADLINE: Duration = Duration::from_millis(250);
/// From one frame to the next: 1316 bytes at 4 Mbit/s.
const INTERVAL: Duration = Duration::from_micros(2632);

const MEDIA: &[(&str, &str)] = &[
    ("paths", "spreading"),
    ("numbering", "shared"),
    ("scheduling", "round-robin"),
    ("reliability", "partial"),
];

/// Media from side 0 to side 1, and when each frame was sent and heard.
struct Media {
    pair: Pair,
    flow: FlowId,
    accepted: FlowId,
    dead: Dead,
    next: u64,
    sent: BTreeMap<u64, Time>,
    heard: Vec<(u64, Time)>,
}

impl Media {
    /// Over paths of 10 and 20 ms one way.
    fn new(set: &[(&str, &str)]) -> Self {
        Self::with_second(MS * 20, set)
    }

    /// The second path takes so long one way.
    fn with_second(one_way: Duration, set: &[(&str, &str)]) -> Self {
        let (mut pair, flow, dead) = two_paths("video", &[MEDIA, set].concat());
        pair.delays.insert(client(2), one_way);
        pair.run_for(one_way * 2);
        let accepted = both_up(&mut pair);
        Media {
            pair,
            flow,
            accepted,
            dead,
            next: 0,
            sent: BTreeMap::new(),
            heard: Vec::new(),
        }
    }

    /// Loses so many of all packets, both ways, beside what dead paths drop.
    fn losing(mut self, seed: u64, share: f64) -> Self {
        let mut draw = Stream::named(seed, "loss");
        let mut rule = self.pair.rule;
        self.pair.rule = Box::new(move |seen| match rule(seen) {
            Verdict::Pass if draw.chance(share) => Verdict::Drop,
            verdict => verdict,
        });
        self
    }

    /// Sends frames for `span`; those that find no room are dropped, as where they come from they would be.
    fn play(&mut self, span: Duration) {
        let until = self.pair.now + span;
        while self.pair.now < until {
            let frame = self.next;
            self.next += 1;
            let data = [&frame.to_be_bytes()[..], &[0; 1308]].concat();
            let now = self.pair.now;
            if self.pair.ends[0].write(now, self.flow, data.into()).is_ok() {
                self.sent.insert(frame, now);
            }
            self.listen(INTERVAL);
        }
    }

    fn listen(&mut self, span: Duration) {
        let until = self.pair.now + span;
        while self.pair.now < until {
            self.pair.run_until(until.min(self.pair.now + MS));
            for data in self.pair.read_all(1, self.accepted) {
                let frame = u64::from_be_bytes(data[..8].try_into().expect("a frame"));
                self.heard.push((frame, self.pair.now));
            }
        }
    }

    /// Drops every transmission of frame `frame`.
    fn never(&mut self, frame: u64) {
        let mut rule = std::mem::replace(&mut self.pair.rule, Box::new(|_| Verdict::Pass));
        self.pair.rule = Box::new(move |seen| {
            let hit = seen.is_data() && seen.payload[..8] == frame.to_be_bytes();
            if hit { Verdict::Drop } else { rule(seen) }
        });
    }

    /// Local addresses by which frame `frame` left, one after another.
    fn ways(&self, frame: u64) -> Vec<SocketAddr> {
        let is_it = |seen: &&Seen| seen.is_data() && seen.payload[..8] == frame.to_be_bytes();
        self.pair
            .log
            .iter()
            .filter(is_it)
            .map(|seen| seen.path.local)
            .collect()
    }

    /// Those that were never heard.
    fn missing(&self) -> Vec<u64> {
        let heard: BTreeSet<_> = self.heard.iter().map(|(frame, _)| *frame).collect();
        self.sent
            .keys()
            .filter(|frame| !heard.contains(frame))
            .copied()
            .collect()
    }

    /// The longest that a frame took which was heard.
    fn worst(&self) -> Duration {
        let took = self.heard.iter().map(|(frame, at)| at.since(self.sent[frame]));
        took.max().unwrap_or_default()
    }

    /// In order, and each once.
    fn is_in_order(&self) -> bool {
        self.heard.windows(2).all(|pair| pair[0].0 < pair[1].0)
    }

    /// Everything that was sent was heard, in order and in time.
    #[track_caller]
    fn assert_all_in_time(&self) {
        assert_eq!(self.missing(), [0_u64; 0], "missing");
        self.assert_in_order_and_time();
    }

    /// What was heard came in order and in time.
    #[track_caller]
    fn assert_in_order_and_time(&self) {
        assert!(self.is_in_order());
        assert!(self.worst() <= DEADLINE, "{}", self.worst());
    }

    fn stats(&self, side: usize) -> FlowStats {
        let flow = [self.flow, self.accepted][side];
        self.pair.ends[side].stats(flow).expect("alive")
    }
}

#[test]
fn both_paths_carry_and_nothing_is_retransmitted_or_missing() {
    let mut media = Media::new(&[]);
    media.play(secs(2));
    media.listen(secs(1));
    media.assert_all_in_time();
    assert!(media.worst() <= MS * 26, "{}", media.worst());
    let stats = media.stats(0);
    assert_eq!(
        (stats.lost_packets, stats.retransmitted_packets, stats.timeouts),
        (0, 0, 0)
    );
    assert_eq!(stats.in_flight_segments, 0);
    for n in [1, 2] {
        assert!(carried(&media.pair, n, Time::ZERO) > 400_000, "path {n}");
    }
    assert_eq!(media.stats(1).skipped_segments, 0);
}

#[test]
fn what_both_paths_lose_at_random_is_there_in_time() {
    for seed in 0..3 {
        let mut media = Media::new(&[]).losing(seed, 0.02);
        media.play(secs(20));
        media.listen(secs(1));
        media.assert_in_order_and_time();
        let (missing, all) = (media.missing().len(), media.sent.len());
        assert!(1000 * missing <= all, "{missing} of {all}");
    }
}

#[test]
fn a_path_that_dies_takes_nothing_with_it() {
    for n in [1, 2] {
        let mut media = Media::new(&[]);
        media.play(secs(2));
        kill(&media.dead, n);
        media.play(secs(3));
        heal(&media.dead);
        media.play(secs(10));
        let from = media.pair.now;
        media.play(secs(1));
        media.listen(secs(1));
        media.assert_all_in_time();
        assert!(carried(&media.pair, n, from) > 100_000, "path {n} is used again");
    }
}

#[test]
fn a_path_that_dies_one_way_only_takes_nothing_with_it() {
    for (n, from) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let mut media = Media::new(&[]);
        media.play(secs(2));
        media.dead.borrow_mut().insert((client(n), from));
        media.play(secs(3));
        media.listen(secs(1));
        media.assert_all_in_time();
    }
}

#[test]
fn an_outage_of_all_paths_is_skipped_and_what_comes_after_is_in_time() {
    let mut media = Media::new(&[]);
    media.play(secs(5));
    kill(&media.dead, 1);
    kill(&media.dead, 2);
    media.play(secs(3));
    assert!(media.stats(0).memory_bytes < 1 << 20);
    heal(&media.dead);
    media.play(secs(5));
    let healthy = media.next;
    media.play(secs(2));
    media.listen(secs(1));
    assert!(media.is_in_order());
    assert!(media.missing().iter().all(|frame| *frame < healthy));
    let late = media
        .heard
        .iter()
        .filter(|(frame, at)| *frame >= healthy && at.since(media.sent[frame]) > DEADLINE);
    assert_eq!(late.count(), 0);
    assert_eq!(media.stats(0).in_flight_segments, 0);
}

/// What a slow path brings is overtaken by all that a fast one does: that is no loss, and a hole is as old as what shows it.
#[test]
fn what_comes_by_a_slow_path_is_neither_retransmitted_nor_skipped() {
    let mut media = Media::with_second(MS * 80, &[]);
    media.play(secs(5));
    media.listen(secs(1));
    media.assert_all_in_time();
    let stats = media.stats(0);
    assert_eq!((stats.lost_packets, stats.retransmitted_packets), (0, 0));
    assert!(carried(&media.pair, 2, Time::ZERO) > 400_000);
    assert!(media.worst() <= MS * 90, "{}", media.worst());
}

/// What the slow path loses would come back too late. It is there when nothing else is.
#[test]
fn a_path_on_which_no_repair_is_in_time_gets_nothing_while_another_works() {
    let mut media = Media::with_second(MS * 100, &[]);
    media.play(secs(2));
    assert_eq!(carried(&media.pair, 2, Time::ZERO), 0, "300 ms");
    kill(&media.dead, 1);
    media.play(secs(2));
    let (from, first) = (media.pair.now, media.next);
    media.play(secs(1));
    media.listen(secs(1));
    assert!(carried(&media.pair, 2, from) > 400_000);
    assert!(media.is_in_order());
    let last: Vec<_> = media.heard.iter().filter(|(frame, _)| *frame >= first).collect();
    assert_eq!(last.len() as u64, media.next - first);
    assert!(
        last.iter()
            .all(|(frame, at)| at.since(media.sent[frame]) <= DEADLINE)
    );
}

/// The application knows what for.
#[test]
fn a_message_for_a_path_on_which_no_repair_is_in_time_goes_there() {
    let mut media = Media::with_second(MS * 100, &[]);
    let (now, second) = (media.pair.now, line(&media.pair, 2));
    let written = media.pair.ends[0].write_on(now, media.flow, noise(1_000).into(), second);
    written.expect("room");
    media.pair.ends[0].finish(now, media.flow);
    media.pair.run_for(MS * 500);
    assert_eq!(media.pair.read_all(1, media.accepted).len(), 1);
    assert!(carried(&media.pair, 2, Time::ZERO) >= 1_000);
}

/// It is measured again although it carries nothing.
#[test]
fn a_path_that_is_slow_for_a_while_is_used_again() {
    let mut media = Media::new(&[]);
    media.play(secs(2));
    for one_way in (20..200).step_by(5) {
        media.pair.delays.insert(client(2), MS * one_way);
        media.play(MS * 200);
    }
    media.pair.delays.insert(client(2), MS * 20);
    media.play(secs(10));
    let from = media.pair.now;
    media.play(secs(1));
    media.listen(secs(1));
    assert!(carried(&media.pair, 2, from) > 100_000);
    media.assert_all_in_time();
}

#[test]
fn one_that_is_lost_on_every_path_is_given_up_once_and_in_time_for_the_others() {
    let mut media = Media::new(&[]);
    for frame in [300, 301, 400] {
        media.never(frame);
    }
    media.play(secs(2));
    media.listen(secs(1));
    assert_eq!(media.missing(), [300, 301, 400]);
    media.assert_in_order_and_time();
    assert_eq!(media.stats(1).skipped_segments, 3);
    let ways = media.ways(400);
    assert!(
        (3..=16).contains(&ways.len()),
        "tried while there was time: {ways:?}"
    );
    let sender = media.stats(0);
    assert_eq!((sender.in_flight_segments, sender.timeouts), (0, 0));
    let before = media.pair.log.iter().filter(|seen| seen.is_data()).count();
    media.listen(secs(5));
    let after = media.pair.log.iter().filter(|seen| seen.is_data()).count();
    assert_eq!(before, after, "nothing is tried any more");
}

#[test]
fn what_one_path_alone_loses_leaves_by_another() {
    let mut media = Media::new(&[("scheduling", "fastest-rtt")]);
    media.play(MS * 500);
    let first = media.next;
    media.dead.borrow_mut().insert((client(1), 0));
    media.play(MS * 20);
    media.dead.borrow_mut().clear();
    media.play(secs(5));
    media.listen(secs(1));
    media.assert_all_in_time();
    let ways = (first..first + 5).map(|frame| media.ways(frame));
    let both = ways.filter(|ways| ways.contains(&client(1)) && ways.contains(&client(2)));
    assert!(both.count() > 0, "the other one was asked as well");
}

#[test]
fn a_path_that_is_removed_takes_nothing_with_it() {
    let mut media = Media::new(&[]);
    for _ in 0..3 {
        media.play(MS * 500);
        let (now, first) = (media.pair.now, line(&media.pair, 1));
        media.pair.ends[0]
            .remove_path(now, media.flow, first)
            .expect("another works");
        media.play(MS * 500);
        let now = media.pair.now;
        media.pair.ends[0]
            .add_path(now, media.flow, first, false)
            .expect("one more");
    }
    media.play(MS * 500);
    media.listen(secs(1));
    media.assert_all_in_time();
}

#[test]
fn an_end_behind_a_hole_that_is_given_up_is_reached() {
    let mut media = Media::new(&[]);
    media.never(99);
    while media.next < 100 {
        media.play(INTERVAL);
    }
    for (side, flow) in [(0, media.flow), (1, media.accepted)] {
        let now = media.pair.now;
        media.pair.ends[side].finish(now, flow);
    }
    media.listen(secs(5));
    assert_eq!(media.missing(), [99]);
    let finished = Some(&CloseReason::Finished);
    assert_eq!((media.pair.closed(0), media.pair.closed(1)), (finished, finished));
    for (side, flow) in [(0, media.flow), (1, media.accepted)] {
        let now = media.pair.now;
        media.pair.ends[side].release(now, flow);
    }
    media.pair.run_for(secs(200));
    let left = media.pair.ends.each_ref().map(|end| end.connections());
    assert_eq!(left, [0, 0], "nothing lingers for ever");
}

/// A peer that leaps to the edge of the window makes everything before a hole, which is given up and costs no more than the window; one
/// that leaps beyond is not heard.
#[test]
fn a_leap_to_the_edge_of_the_window_costs_a_bounded_hole() {
    let set = [("window", "256 segments")];
    let mut media = Media::new(&set);
    media.play(secs(5));
    media.listen(secs(1));
    let before = media.stats(1);
    media.pair.forge(0, &[7; 100], |header| {
        header.sequence = header.sequence.map(|number| number.wrapping_add(255));
    });
    media.pair.forge(0, &[7; 100], |header| {
        header.sequence = header.sequence.map(|number| number.wrapping_add(100_000));
    });
    let heard = media.heard.len();
    media.pair.run_for(secs(1));
    let leapt = media.pair.read_all(1, media.accepted);
    assert_eq!(leapt.len(), 1, "the hole was given up");
    assert_eq!(media.heard.len(), heard);
    let after = media.stats(1);
    let skipped = after.skipped_segments - before.skipped_segments;
    assert!((254..=255).contains(&skipped), "{skipped}");
    assert!(after.memory_bytes <= before.memory_bytes + 64 * 1024);
}

/// To pass over what was never sent, or to take back what was passed over, is refused or has no effect.
#[test]
fn a_pointer_that_lies_gives_nothing_up() {
    let mut media = Media::new(&[]);
    media.play(secs(5));
    media.listen(secs(1));
    let before = media.stats(0);
    for leap in [1, 500, 1 << 31] {
        media.pair.forge(1, b"", |header| {
            header.acknowledgement = header.acknowledgement.map(|number| number.wrapping_add(leap));
        });
    }
    assert!(media.stats(0).rejected_packets >= before.rejected_packets + 2);
    media.pair.forge(1, b"", |header| {
        header.acknowledgement = header.acknowledgement.map(|number| number.wrapping_sub(200));
    });
    media.play(secs(5));
    media.listen(secs(1));
    media.assert_all_in_time();
    assert_eq!(media.stats(0).retransmitted_packets, before.retransmitted_packets);
}

/// It would give numbers up on each path by itself.
#[test]
fn a_peer_that_ignores_shared_numbers_is_not_met_halfway() {
    const BIT: usize = 2 * 8 + 6;
    let mut pair = Pair::new("video", MEDIA);
    pair.rule = Box::new(|seen| {
        if seen.header.services.shared_numbers {
            Verdict::Flip(BIT)
        } else {
            Verdict::Pass
        }
    });
    pair.open();
    pair.run_for(secs(100));
    assert!(pair.closed(0).is_some() && pair.accepted().is_none());
}

#[test]
fn a_peer_without_multipath_gets_one_path_and_skips_there() {
    let mut acceptor: EndpointConfig = config("video", MEDIA).listen(PORT, Acceptance::Any);
    acceptor.several_paths = false;
    let mut pair = Pair::of(config("video", MEDIA), acceptor);
    let flow = pair.ends[0]
        .open(pair.now, line(&pair, 1), PORT)
        .expect("a free port");
    pair.run_for(MS * 200);
    let accepted = pair.accepted().expect("accepted");
    let mut media = Media {
        pair,
        flow,
        accepted,
        dead: Dead::default(),
        next: 0,
        sent: BTreeMap::new(),
        heard: Vec::new(),
    };
    media.never(50);
    media.play(secs(5));
    media.listen(secs(1));
    assert_eq!(media.missing(), [50]);
    media.assert_in_order_and_time();
}

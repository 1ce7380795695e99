//! The sender of the sliding window code (RFC 8681): when an encoded packet leaves. After so many segments as the code rate says;
//! sooner when the oldest segment that none has combined is about to be of no use, and behind the FIN, after which nothing comes.

use super::code_rate::{Conditions, Plan, plan};
use super::paths::Paths;
use super::window::{Reach, Window};
use crate::ack::AckReport;
use crate::recovery::LaneId;
use crate::reliability::encoded::Encoded;
use bytes::Bytes;
use restp_base::ranges::Ranges;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// Taken for the distance of two segments before one is known: the packet interval of G.711 (ResTP §4.5).
const FIRST_INTERVAL: Duration = Duration::from_millis(20);
/// Where packets combine segments far apart, those that wait for one to come are encoded without it when none has come for so many
/// distances of two, and they are about to be of no use.
const PAUSE: u64 = 2;
/// The plan is made anew after so many segments, and a round trip: sooner nobody has reported more than it rests on.
pub(super) const PLAN_SEGMENTS: u32 = 32;

/// What the composition says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RlcParameters {
    /// Encoded packets for 100 segments, at most.
    pub most_percent: u32,
    /// A segment is of use until so long after it left.
    pub deadline: Option<Duration>,
    /// What is lost leaves again where it is in time.
    pub retransmits: bool,
}

/// Keeps what may be encoded, and encodes it.
#[derive(Debug)]
pub(crate) struct RlcEncoder {
    parameters: RlcParameters,
    window: Window,
    paths: Paths,
    last_sent: Option<Time>,
    /// From one segment to the next, smoothed.
    interval: Duration,
    plan: Option<Plan>,
    /// Segments until the plan is made anew, and when at the earliest.
    plan_lasts: u32,
    plan_until: Time,
    /// Segments since the last encoded packet.
    since: u16,
    /// Every number below was combined at least once, or is by a packet that is to follow.
    covered_below: u64,
    /// What no packet has combined yet.
    bare: Ranges,
    ready: VecDeque<Encoded>,
}

impl RlcEncoder {
    /// Nothing was sent.
    pub(crate) fn new(parameters: RlcParameters) -> Self {
        RlcEncoder {
            parameters,
            window: Window::default(),
            paths: Paths::default(),
            last_sent: None,
            interval: FIRST_INTERVAL,
            plan: None,
            plan_lasts: 0,
            plan_until: Time::ZERO,
            since: 0,
            covered_below: 0,
            bare: Ranges::new(),
            ready: VecDeque::new(),
        }
    }

    /// The segment `number` is about to leave by `lane` for the first time; without payload it is the FIN.
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        number: u64,
        payload: Option<&Bytes>,
        lane: LaneId,
        rtt: Option<Duration>,
    ) {
        self.paths.on_sent(number, lane, rtt);
        self.measure_interval(now);
        self.window
            .push(now, number, payload.cloned().unwrap_or_default());
        self.bare.insert(number..number + 1);
        self.bare.remove_below(self.window.first());
        self.since = self.since.saturating_add(1);
        if self.plan_lasts == 0 && self.plan_until <= now {
            (self.plan, self.plan_lasts) = (self.plan_anew(), PLAN_SEGMENTS);
            self.plan_until = now + self.paths.longest_rtt(self.parameters.deadline);
        }
        self.plan_lasts = self.plan_lasts.saturating_sub(1);
        if payload.is_none() {
            if self.plan.is_some() || !self.parameters.retransmits {
                self.encode_all(now);
            }
        } else if let Some(plan) = self.plan.filter(|plan| self.since >= plan.every) {
            self.encode(now, plan.reach);
        }
    }

    /// The peer reports what arrived.
    pub(crate) fn on_report(&mut self, report: &AckReport) {
        self.paths.on_report(report);
    }

    /// From now on packets leave by these lanes, with so long a round trip.
    pub(crate) fn set_routes(&mut self, routes: &[(LaneId, Option<Duration>)]) {
        if self.paths.set_routes(routes) {
            (self.plan_lasts, self.plan_until) = (0, Time::ZERO);
        }
    }

    /// `lane` is that of another path from now on.
    pub(crate) fn forget_lane(&mut self, lane: LaneId) {
        self.paths.forget(lane);
    }

    /// Is something in time that leaves now to stand for a segment that left at `sent_at`?
    pub(crate) fn is_in_time(&self, now: Time, sent_at: Time) -> bool {
        let deadline = self.parameters.deadline;
        deadline.is_none_or(|deadline| now.since(sent_at) + self.paths.shortest_rtt() / 2 <= deadline)
    }

    /// When the oldest segment that was not combined has to be, where a path takes what combines it.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let plan = self.plan?;
        if self.paths.are_shut() {
            return None;
        }
        let of_use = |number| Some(self.window.sent_at(number)? + self.slack()?.scaled(7, 8));
        let is_left = self.covered_below < self.window.next();
        let oldest = is_left.then(|| of_use(self.covered_below)).flatten();
        let bare = self.bare.first().filter(|_| plan.reach.stride > 1);
        let pause = bare.and_then(|bare| {
            let silence = self.last_sent? + self.interval * PAUSE;
            Some(silence.max(of_use(bare.start)?))
        });
        pause.into_iter().chain(oldest).min()
    }

    /// The next encoded packet to send by `lane`.
    pub(crate) fn poll(&mut self, now: Time, lane: LaneId) -> Option<Encoded> {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.encode_all(now);
        }
        let next = self.ready.front()?;
        if !self.paths.takes(lane, next, self.parameters.deadline) {
            return None;
        }
        self.paths.on_encoded(lane);
        self.ready.pop_front()
    }

    /// True when every encoded packet was taken.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty()
    }

    /// Forgets what was sent.
    pub(crate) fn clear(&mut self) {
        *self = RlcEncoder::new(self.parameters);
    }

    /// Payload bytes kept.
    pub(crate) fn bytes(&self) -> usize {
        let ready: usize = self.ready.iter().map(|encoded| encoded.payload.len()).sum();
        self.window.bytes() + ready
    }

    fn plan_anew(&self) -> Option<Plan> {
        plan(&Conditions {
            paths: &self.paths.conditions(self.parameters.deadline),
            retransmits: self.parameters.retransmits,
            deadline: self.of_use(),
            interval: self.interval,
            most_percent: self.parameters.most_percent,
        })
    }

    /// How long a segment is of use. Nobody has said how long: then a reader waits as long as for a retransmission.
    fn of_use(&self) -> Option<Duration> {
        let unsaid = || (!self.parameters.retransmits).then(|| self.paths.longest_rtt(None).scaled(3, 2));
        self.parameters.deadline.or_else(unsaid)
    }

    /// For so long after a segment left something may leave that arrives in time, whichever path it takes.
    fn slack(&self) -> Option<Duration> {
        let longest = self.paths.longest_rtt(self.parameters.deadline);
        Some(self.of_use()?.saturating_sub(longest / 2))
    }

    /// A pause is no distance of two segments.
    fn measure_interval(&mut self, now: Time) {
        let Some(last) = self.last_sent.replace(now) else {
            return;
        };
        let gap = now.since(last).min(self.slack().unwrap_or(Duration::MAX));
        self.interval = self.interval.scaled(15, 16) + gap / 16;
    }

    fn encode_all(&mut self, now: Time) {
        let all = self.window.len() as u16;
        self.encode(
            now,
            Reach {
                back: all.saturating_sub(1),
                count: all,
                stride: 1,
            },
        );
    }

    /// Combines what of `reach` is still of use.
    fn encode(&mut self, now: Time, reach: Reach) {
        self.since = 0;
        if let Some(slack) = self.slack() {
            self.window
                .forget_before(Time::from_nanos(now.as_nanos().saturating_sub(slack.as_nanos())));
        }
        let beyond =
            u64::from(reach.back).saturating_sub(u64::from(reach.count - 1) * u64::from(reach.stride));
        let first = self.window.next().saturating_sub(1 + u64::from(reach.back));
        for step in 0..u64::from(reach.count) {
            let number = first + step * u64::from(reach.stride);
            self.bare.remove(&(number..number + 1));
        }
        self.bare.remove_below(self.window.first()); // of no use any more
        self.covered_below = self.covered_below.max(self.window.next().saturating_sub(beyond));
        self.ready.extend(self.window.encode(reach));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliability::FecCode;

    const VOICE: RlcParameters = RlcParameters {
        most_percent: 50,
        deadline: Some(Duration::from_millis(200)),
        retransmits: true,
    };

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }
    fn at(n: u64) -> Time {
        Time::ZERO + ms(n)
    }

    /// Sends frame `number` at 20 ms each and returns what is encoded right behind it.
    fn frame(encoder: &mut RlcEncoder, number: u64, rtt: u64) -> Option<Vec<u64>> {
        let now = at(20 * number);
        encoder.on_sent(
            now,
            number,
            Some(&Bytes::from_static(b"frame")),
            LaneId::FIRST,
            Some(ms(rtt)),
        );
        covered(encoder.poll(now, LaneId::FIRST))
    }
    fn covered(encoded: Option<Encoded>) -> Option<Vec<u64>> {
        encoded.map(|encoded| FecCode::Rlc.covered(encoded.first, encoded.range).collect())
    }

    /// Each report is of a frame that arrived; every twentieth is lost.
    fn reported(encoder: &mut RlcEncoder, count: u64) {
        for number in (1..=count).filter(|number| number % 20 != 0) {
            let mut report = AckReport::pointer(1);
            report.received.push(number..number + 1);
            encoder.on_report(&report);
        }
    }

    #[test]
    fn with_five_of_a_hundred_lost_every_second_frame_is_followed_by_what_is_still_of_use() {
        let mut encoder = RlcEncoder::new(VOICE);
        let encoded: Vec<_> = (1..=60).map(|number| frame(&mut encoder, number, 250)).collect();
        assert!(
            encoded.iter().any(Option::is_some),
            "what is unknown is no reason to send none"
        );
        reported(&mut encoder, 60);
        (61..=96).for_each(|number| _ = frame(&mut encoder, number, 250));
        let next: Vec<_> = (97..=100)
            .filter_map(|number| frame(&mut encoder, number, 250))
            .collect();
        assert_eq!(next.len(), 2);
        assert!(next[0].len() == 4 && next[1] == next[0].iter().map(|n| n + 2).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_leaves_where_a_retransmission_is_in_time() {
        let mut encoder = RlcEncoder::new(VOICE);
        assert!((1..=100).all(|number| frame(&mut encoder, number, 60).is_none()));
        assert!(encoder.is_in_time(at(2000), at(1830)) && !encoder.is_in_time(at(2001), at(1830)));
        assert_eq!(encoder.deadline(), None);
        encoder.on_sent(at(2020), 101, None, LaneId::FIRST, None);
        assert!(encoder.is_idle());
    }

    /// However many segments leave in it: a plan for a long window over many paths takes longer than they do.
    #[test]
    fn a_plan_lasts_a_round_trip_unless_paths_come_or_go() {
        let mut encoder = RlcEncoder::new(VOICE);
        let mut planned = |micros: u64| {
            let now = Time::ZERO + Duration::from_micros(micros);
            let number = micros + 1;
            encoder.on_sent(now, number, Some(&Bytes::new()), LaneId::FIRST, Some(ms(250)));
            encoder.plan_until
        };
        assert!((0..1000).all(|micros| planned(micros) == at(250)));
        assert_eq!(planned(250_000), at(500));
        encoder.set_routes(&[(LaneId::nth(1), Some(ms(100)))]);
        encoder.on_sent(at(251), 250_002, Some(&Bytes::new()), LaneId::nth(1), None);
        assert_eq!(encoder.plan_until, at(351));
    }

    #[test]
    fn the_last_frames_of_a_talk_do_not_wait_for_others() {
        let mut encoder = RlcEncoder::new(VOICE);
        let mut number = 0;
        while number == 0 || frame(&mut encoder, number, 250).is_some() || encoder.deadline().is_none() {
            number += 1;
        }
        let due = encoder.deadline().expect("not combined");
        assert!(due < at(20 * number) + ms(75) && encoder.poll(at(20 * number + 1), LaneId::FIRST).is_none());
        encoder.set_routes(&[]);
        assert_eq!(encoder.deadline(), None, "no path takes it");
        encoder.set_routes(&[(LaneId::FIRST, None)]);
        let last = covered(encoder.poll(due, LaneId::FIRST)).expect("something");
        assert_eq!(last.last(), Some(&number));
        assert_eq!(encoder.deadline(), None);
    }

    /// Bursts are met by packets that combine frames far apart. Each frame waits for later ones to be combined with: when none
    /// comes, the talk is over.
    #[test]
    fn what_waits_for_later_frames_is_encoded_when_none_comes() {
        let mut encoder = RlcEncoder::new(RlcParameters {
            deadline: Some(ms(260)),
            ..VOICE
        });
        let mut last = 0;
        let is_spread = |encoder: &RlcEncoder| encoder.plan.is_some_and(|plan| plan.reach.stride > 1);
        while !is_spread(&encoder) || encoder.bare.len() < 2 {
            last += 1;
            frame(&mut encoder, last, 300);
            let mut report = AckReport::pointer(1);
            if last % 200 > 1 {
                report.received.push(last..last + 1);
            }
            encoder.on_report(&report);
            assert!(last < 20_000, "{:?}", encoder.plan);
        }
        while encoder.poll(at(20 * last), LaneId::FIRST).is_some() {}
        let bare: Vec<_> = encoder.bare.iter().cloned().collect();
        let due = encoder.deadline().expect("frames wait");
        assert!(
            due > at(20 * last) + ms(30) && due < at(20 * last) + ms(60),
            "{due:?}"
        );
        let covered = covered(encoder.poll(due, LaneId::FIRST)).expect("something");
        assert!(
            bare.iter()
                .flat_map(Clone::clone)
                .all(|number| covered.contains(&number)),
            "{bare:?} {covered:?}"
        );
        assert_eq!(encoder.deadline(), None);
    }

    /// Nothing was left to encode, and the deadline stayed where it was: no time passed any more.
    #[test]
    fn frames_that_are_of_no_use_any_more_wait_for_nothing() {
        let mut encoder = RlcEncoder::new(VOICE);
        frame(&mut encoder, 1, 250);
        encoder.plan = Some(Plan {
            every: 2,
            reach: Reach {
                back: 2,
                count: 2,
                stride: 2,
            },
        });
        assert!(encoder.deadline().is_some());
        encoder.poll(at(10_000), LaneId::FIRST);
        assert_eq!(encoder.deadline(), None);
    }

    #[test]
    fn the_fin_takes_all_with_it_and_a_service_without_retransmissions_always_has_its_end_encoded() {
        let mut encoder = RlcEncoder::new(RlcParameters {
            retransmits: false,
            deadline: None,
            ..VOICE
        });
        encoder.on_sent(at(0), 7, None, LaneId::FIRST, None);
        assert_eq!(covered(encoder.poll(at(0), LaneId::FIRST)), Some(vec![7]));
        assert!(encoder.is_idle());
    }

    /// Frames leave by two paths in turn; returns by which each encoded packet of `numbers` leaves.
    fn over_two(
        encoder: &mut RlcEncoder,
        numbers: std::ops::Range<u64>,
        lost: impl Fn(u64) -> bool,
    ) -> Vec<usize> {
        let lanes = [LaneId::FIRST, LaneId::nth(1)];
        let mut taken = Vec::new();
        for number in numbers {
            let (now, lane) = (at(20 * number), lanes[(number % 2) as usize]);
            let frame = Bytes::from_static(b"frame");
            encoder.on_sent(now, number, Some(&frame), lane, Some(ms(250)));
            while let Some(index) = (0..2).find(|index| encoder.poll(now, lanes[*index]).is_some()) {
                taken.push(index);
            }
            if !lost(number) {
                let mut report = AckReport::pointer(1);
                report.received.push(number..number + 1);
                encoder.on_report(&report);
            }
        }
        taken
    }

    #[test]
    fn over_two_paths_encoded_packets_leave_by_both_in_turn_and_by_one_when_that_is_left() {
        let mut encoder = RlcEncoder::new(VOICE);
        let routes = [LaneId::FIRST, LaneId::nth(1)].map(|lane| (lane, Some(ms(250))));
        encoder.set_routes(&routes);
        let lost = |number| number % 20 < 2;
        over_two(&mut encoder, 1..200, lost);
        let taken = over_two(&mut encoder, 200..240, lost);
        assert_eq!(taken.len(), 20);
        assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "{taken:?}");
        encoder.set_routes(&routes[..1]);
        let taken = over_two(&mut encoder, 240..280, lost);
        assert!(
            taken.len() >= 20 && taken.iter().all(|index| *index == 0),
            "{taken:?}"
        );
    }

    /// It shows only when a later frame of the path that lost it arrives, and leaves again by the faster one.
    #[test]
    fn a_retransmission_by_the_faster_path_is_in_time() {
        let mut encoder = RlcEncoder::new(VOICE);
        encoder.set_routes(&[(LaneId::FIRST, Some(ms(250))), (LaneId::nth(1), Some(ms(100)))]);
        assert!(encoder.is_in_time(at(2000), at(1850)) && !encoder.is_in_time(at(2001), at(1850)));
    }
}

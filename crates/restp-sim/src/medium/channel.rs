//! One channel at work: stations, and what becomes of their frames.
//!
//! Two events per frame at most: a station begins, and its frame is over at the station it is addressed to. The answer,
//! a SIFS later, is written into its hearers at that moment.

use super::ear::Signal;
use super::hops::{self, Hop, Reach};
use super::radio::{Frame, Kind, Phase, Radio, Waiting};
use super::seen::{FrameRecord, FrameSeen};
use super::spec::MediumSpec;
use super::timing::{ACK_BYTES, CTS_BYTES, MOST_BYTES, Mode, RTS_BYTES, Timing};
use crate::counters::{Counters, DropReason};
use crate::error_model::{LossUnit, RateLoss, RateProcess};
use crate::parcel::Parcel;
use crate::queue::{EventQueue, Ties};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// So often the places of stations that move are taken anew: at 30 m/s they are three metres off at most.
const STEP: Duration = Duration::from_millis(100);

/// The running form of a [`MediumSpec`].
#[derive(Debug)]
pub(crate) struct Medium {
    timing: Timing,
    queue_packets: usize,
    rts_threshold: u32,
    short_retries: u32,
    long_retries: u32,
    radios: Vec<Radio>,
    /// Whom each station reaches.
    reaches: Vec<Vec<Reach>>,
    hops: Vec<Hop>,
    events: EventQueue,
    errors: Option<RateProcess>,
    slowest: Mode,
    capture: Option<f64>,
    eifs_after_carriers: bool,
    /// Where stations go, if any does.
    moves: Option<Box<MediumSpec>>,
    frames: u64,
    record: FrameRecord,
}

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The neighbour has it.
    Delivered {
        packet: u32,
        /// By its place in [`MediumSpec::links`], twice, and one more where it goes back.
        hop: u32,
    },
    /// It was given up.
    Dropped {
        packet: u32,
        hop: u32,
        reason: DropReason,
    },
}

impl Medium {
    /// A checked description at work; it draws from streams below `medium/<name>` of the run `seed`.
    pub(crate) fn new(spec: &MediumSpec, seed: u64) -> Self {
        let stream = |part: &str| Stream::named(seed, &format!("medium/{}/{part}", spec.name));
        let stations = spec.stations.iter();
        let radios =
            stations.map(|station| Radio::new(&spec.timing, stream(&format!("{}/backoff", station.node))));
        let stations_and_walk = spec.stations.len() + 1;
        let moves = spec.stations.iter().any(|station| !station.waypoints.is_empty());
        let mut medium = Medium {
            timing: spec.timing,
            queue_packets: spec.queue_packets as usize,
            rts_threshold: spec.rts_threshold,
            short_retries: spec.short_retries,
            long_retries: spec.long_retries,
            radios: radios.collect(),
            reaches: hops::reaches(spec, Time::ZERO),
            hops: hops::hops(spec, stream),
            slowest: spec.rates.slowest(),
            capture: spec.capture,
            eifs_after_carriers: spec.eifs_after_carriers,
            events: EventQueue::new(
                stations_and_walk,
                Ties::new(stream("ties").bits(), stations_and_walk),
            ),
            errors: (spec.bit_error_rate > 0.0).then(|| {
                let bits = RateLoss {
                    probability: spec.bit_error_rate,
                    unit: LossUnit::Bit,
                };
                RateProcess::new(&bits, stream("errors"))
            }),
            frames: 0,
            record: FrameRecord::default(),
            moves: moves.then(|| Box::new(spec.clone())),
        };
        medium.walk(Time::ZERO);
        medium
    }

    /// Stations that move are looked at every [`STEP`], until all have come to rest.
    fn walk(&mut self, now: Time) {
        let (walk, Some(spec)) = (self.radios.len(), &self.moves) else {
            return;
        };
        self.reaches = hops::reaches(spec, now);
        for hop in &mut self.hops {
            let reach = self.reaches[hop.from as usize]
                .iter()
                .find(|reach| reach.station == hop.to);
            hop.delay = reach.map_or(hop.delay, |reach| reach.delay);
        }
        if spec.stations.iter().any(|station| station.rests_from() > now) {
            self.events.set(walk, now + STEP);
        } else {
            self.events.clear(walk);
        }
    }

    /// Puts a packet into the queue of the station where `hop` begins; says why it finds no place there.
    pub(crate) fn offer(&mut self, now: Time, hop: u32, parcel: Parcel) -> Result<(), DropReason> {
        let bytes = parcel.bytes;
        let Hop { from, counters, .. } = &mut self.hops[hop as usize];
        let (station, radio) = (*from, &mut self.radios[*from as usize]);
        counters.packets += 1;
        counters.bytes += u64::from(bytes);
        if bytes > MOST_BYTES && !parcel.may_fragment {
            counters.drop(DropReason::Length);
            return Err(DropReason::Length);
        }
        // The packet being sent does not wait.
        let waiting = radio.queue.len().saturating_sub(1);
        if waiting >= self.queue_packets {
            counters.drop(DropReason::Queue);
            return Err(DropReason::Queue);
        }
        radio
            .queue
            .push_back(Waiting::new(parcel.tag as u32, hop, (bytes, self.slowest), now));
        if radio.queue.len() > 1 {
            let held = radio.queue.iter().skip(1).map(|waiting| u64::from(waiting.bytes));
            counters.queued(waiting as u64 + 1, held.sum());
        } else {
            radio.begin(now, &self.timing);
            self.settle(station);
        }
        Ok(())
    }

    /// The frames that were over since the last call; the first one begins the record.
    pub(crate) fn take_frames(&mut self) -> Vec<FrameSeen> {
        self.record.take()
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Time> {
        self.events.first().map(|(at, _)| at)
    }

    /// Does what is due by `now`, up to the first packet of which something has become.
    pub(crate) fn advance(&mut self, now: Time) -> Option<Outcome> {
        while let Some((at, station)) = self.events.first()
            && at <= now
        {
            let Some(radio) = self.radios.get_mut(station) else {
                self.walk(at);
                continue;
            };
            let due = radio.due(&self.timing);
            radio.scheduled = Time::MAX;
            self.events.clear(station);
            if due > at {
                // The medium was busy meanwhile.
                self.settle(station as u32);
                continue;
            }
            let outcome = self.act(station as u32, at);
            if outcome.is_some() {
                return outcome;
            }
        }
        None
    }

    /// What a hop has done.
    pub(crate) fn counters(&self, hop: u32) -> Counters {
        self.hops[hop as usize].counters.clone()
    }

    /// Packets and bytes that wait at the station where `hop` begins, for this hop.
    pub(crate) fn waiting(&self, hop: u32) -> (u64, u64) {
        let queue = &self.radios[self.hops[hop as usize].from as usize].queue;
        let waiting = queue.iter().skip(1).filter(|waiting| waiting.hop == hop);
        waiting.fold((0, 0), |(packets, bytes), waiting| {
            (packets + 1, bytes + u64::from(waiting.bytes))
        })
    }

    fn act(&mut self, station: u32, now: Time) -> Option<Outcome> {
        let radio = &mut self.radios[station as usize];
        match radio.phase {
            Phase::Contending => {
                self.begin(station, now);
                None
            }
            Phase::Awaiting { why, .. } => self.fail(station, now, why),
            Phase::Sending(frame) => {
                radio.phase = Phase::Contending;
                self.over(station, frame, now)
            }
        }
    }

    /// The backoff is over: an RTS, or the data frame itself.
    fn begin(&mut self, station: u32, now: Time) {
        let Some(head) = self.radios[station as usize].queue.front_mut() else {
            return;
        };
        head.mode = self.hops[head.hop as usize]
            .chooser
            .choose(now, head.short + head.long);
        let (bytes, hop) = (head.bytes, head.hop);
        if bytes + self.timing.data_header > self.rts_threshold {
            let (airtime, reserves) = (self.timing.rts(), self.timing.after_rts(&head.mode, bytes));
            self.transmit(station, now, (Kind::Rts, hop), airtime, reserves);
        } else {
            self.send_data(station, now);
        }
    }

    fn send_data(&mut self, station: u32, at: Time) {
        if let Some(&head) = self.radios[station as usize].queue.front() {
            let (airtime, reserves) = (self.timing.data(&head.mode, head.bytes), self.timing.after_data());
            self.transmit(station, at, (Kind::Data, head.hop), airtime, reserves);
        }
    }

    fn transmit(
        &mut self,
        station: u32,
        from: Time,
        (kind, hop): (Kind, u32),
        airtime: Duration,
        reserves: Duration,
    ) {
        let mode = match kind {
            Kind::Data => self.radios[station as usize]
                .queue
                .front()
                .map_or(self.slowest, |head| head.mode),
            Kind::Rts | Kind::Cts | Kind::Ack => self.timing.control,
        };
        let need = (mode.need / self.slowest.need).max(1.0);
        self.frames += 1;
        let Hop { delay, counters, .. } = &mut self.hops[hop as usize];
        counters.busy += airtime;
        let frame = Frame {
            kind,
            number: self.frames,
            hop,
            from,
            airtime,
            over: from + airtime + *delay,
            need,
            reserves,
        };
        self.radios[station as usize].transmit(frame, &self.timing);
        for reach in &self.reaches[station as usize] {
            let signal = Signal {
                frame: frame.number,
                from: from + reach.delay,
                until: from + airtime + reach.delay,
                power: reach.power,
                decodes: reach.power >= need,
                bears: self.capture.map_or(0.0, |ratio| reach.power / (ratio * need)),
                // Its header is as slow as the slowest mode.
                is_noticed: reach.power >= 1.0 || self.eifs_after_carriers,
                senses: reach.senses,
            };
            let radio = &mut self.radios[reach.station as usize];
            radio.hear(signal, &self.timing);
            radio.schedule(reach.station, &self.timing, &mut self.events);
        }
        self.settle(station);
    }

    /// A frame of `station` is over at the station it is addressed to.
    fn over(&mut self, station: u32, frame: Frame, now: Time) -> Option<Outcome> {
        let Hop { from, to, .. } = self.hops[frame.hop as usize];
        let peer = if station == from { to } else { from };
        if !frame.reserves.is_zero() {
            self.reserve(station, peer, frame, now);
        }
        let heard = self.heard(station, peer, frame);
        let answer_at = now + self.timing.sifs;
        match frame.kind {
            Kind::Rts => {
                let granted = heard.and_then(|()| self.grants(peer, now));
                self.record.note([station, peer], &frame, granted);
                if granted.is_ok() {
                    let airtime = self.timing.cts();
                    let reserves = frame.reserves.saturating_sub(self.timing.sifs + airtime);
                    self.transmit(peer, answer_at, (Kind::Cts, frame.hop), airtime, reserves);
                }
                self.await_answer(station, Kind::Rts, now, granted);
                None
            }
            Kind::Data => {
                let heard = heard.and_then(|()| self.listens(peer));
                self.record.note([station, peer], &frame, heard);
                let outcome = heard.ok().and_then(|()| self.deliver(station));
                if heard.is_ok() {
                    let airtime = self.timing.ack();
                    self.transmit(peer, answer_at, (Kind::Ack, frame.hop), airtime, Duration::ZERO);
                }
                self.await_answer(station, Kind::Data, now, heard);
                outcome
            }
            Kind::Cts | Kind::Ack => {
                self.record.note([station, peer], &frame, heard);
                self.settle(station);
                self.answered(peer, frame.kind, now, heard)
            }
        }
    }

    /// Who else has decoded a frame keeps off the medium for as long as it says.
    fn reserve(&mut self, station: u32, peer: u32, frame: Frame, now: Time) {
        for reach in &self.reaches[station as usize] {
            if reach.power < 1.0 || reach.station == peer {
                continue;
            }
            let radio = &mut self.radios[reach.station as usize];
            if radio.ear.decoded(frame.number) {
                radio.reserve(now, now + frame.reserves, &self.timing);
            }
        }
    }

    /// Has the frame reached the station it is addressed to, unspoilt and without a flipped bit?
    fn heard(&mut self, station: u32, peer: u32, frame: Frame) -> Result<(), DropReason> {
        let bytes = match frame.kind {
            Kind::Rts => RTS_BYTES,
            Kind::Cts => CTS_BYTES,
            Kind::Ack => ACK_BYTES,
            Kind::Data => {
                let sender = self.hops[frame.hop as usize].from as usize;
                let head = self.radios[sender].queue.front();
                head.map_or(0, |head| head.bytes) + self.timing.data_header
            }
        };
        let flipped = self.errors.as_mut().is_some_and(|errors| errors.loses(bytes));
        match self.radios[peer as usize].ear.decoded(frame.number) {
            false => Err(self.spoilt(station, peer, frame)),
            true if flipped => Err(DropReason::Error),
            true => Ok(()),
        }
    }

    /// Why a frame was not received: out of range, too weak for its mode, or beside others.
    fn spoilt(&self, station: u32, peer: u32, frame: Frame) -> DropReason {
        let reach = self.reaches[station as usize]
            .iter()
            .find(|reach| reach.station == peer);
        match reach.map_or(0.0, |reach| reach.power) {
            power if power >= frame.need => DropReason::Collision,
            power if power >= 1.0 => DropReason::Error,
            _ => DropReason::Outage,
        }
    }

    /// Does a station answer? Not while it waits for an answer itself, or has one under way.
    fn listens(&self, station: u32) -> Result<(), DropReason> {
        let free = matches!(self.radios[station as usize].phase, Phase::Contending);
        free.then_some(()).ok_or(DropReason::Contention)
    }

    /// Does it answer an RTS? Not while the medium is reserved around it, either (§9.2.5.4).
    fn grants(&self, station: u32, now: Time) -> Result<(), DropReason> {
        self.listens(station)?;
        let free = self.radios[station as usize].ear.unreserved(now);
        free.then_some(()).ok_or(DropReason::Contention)
    }

    /// The station waits for the answer that is coming, or for the one that is not. One that is spoilt is noticed to begin, and so is
    /// waited for to its end (802.11-1999 §9.2.8).
    fn await_answer(&mut self, station: u32, asked: Kind, now: Time, coming: Result<(), DropReason>) {
        let (until, why) = match coming {
            Ok(()) => (Time::MAX, DropReason::Collision),
            Err(why) => (now + self.timing.timeout(), why),
        };
        self.radios[station as usize].phase = Phase::Awaiting { asked, until, why };
        self.settle(station);
    }

    /// The answer to a station's frame is over.
    fn answered(
        &mut self,
        station: u32,
        kind: Kind,
        now: Time,
        heard: Result<(), DropReason>,
    ) -> Option<Outcome> {
        match heard {
            Err(why) => self.fail(station, now, why),
            Ok(()) if kind == Kind::Cts => {
                self.send_data(station, now + self.timing.sifs);
                None
            }
            Ok(()) => {
                if let Some(head) = self.radios[station as usize].queue.front() {
                    let chooser = &mut self.hops[head.hop as usize].chooser;
                    chooser.on_attempt(head.mode, true);
                }
                self.finish(station, now);
                None
            }
        }
    }

    /// The receiver has the packet that `station` is sending. It drops the one that is sent again because the ACK
    /// was lost.
    fn deliver(&mut self, station: u32) -> Option<Outcome> {
        let head = self.radios[station as usize].queue.front_mut()?;
        if std::mem::replace(&mut head.arrived, true) {
            return None;
        }
        let Waiting { packet, hop, .. } = *head;
        self.hops[hop as usize].counters.delivered += 1;
        Some(Outcome::Delivered { packet, hop })
    }

    /// No answer came to an RTS or to data.
    fn fail(&mut self, station: u32, now: Time, why: DropReason) -> Option<Outcome> {
        let radio = &mut self.radios[station as usize];
        let head = radio.queue.front_mut()?;
        let sent_data = matches!(
            radio.phase,
            Phase::Awaiting {
                asked: Kind::Data,
                ..
            }
        );
        if sent_data {
            let chooser = &mut self.hops[head.hop as usize].chooser;
            chooser.on_attempt(head.mode, false);
        }
        let asked_first = head.bytes + self.timing.data_header > self.rts_threshold;
        let (tries, limit) = match sent_data && asked_first {
            true => (&mut head.long, self.long_retries),
            false => (&mut head.short, self.short_retries),
        };
        *tries += 1;
        if *tries >= limit {
            let Waiting {
                packet, hop, arrived, ..
            } = *head;
            self.finish(station, now);
            if arrived {
                return None;
            }
            self.hops[hop as usize].counters.drop(why);
            return Some(Outcome::Dropped {
                packet,
                hop,
                reason: why,
            });
        }
        radio.phase = Phase::Contending;
        radio.backoff.widen(&self.timing);
        radio.contend(&self.timing);
        radio.backoff.not_before(now);
        self.settle(station);
        None
    }

    /// The station is done with its packet, for good or ill.
    fn finish(&mut self, station: u32, now: Time) {
        let radio = &mut self.radios[station as usize];
        if let Some(done) = radio.queue.pop_front() {
            self.hops[done.hop as usize].counters.sent += 1;
        }
        if let Some(next) = radio.queue.front() {
            self.hops[next.hop as usize]
                .counters
                .waits
                .record(now.since(next.since));
        }
        radio.phase = Phase::Contending;
        radio.backoff.reset(&self.timing);
        radio.contend(&self.timing);
        radio.backoff.not_before(now);
        self.settle(station);
    }

    fn settle(&mut self, station: u32) {
        self.radios[station as usize].schedule(station, &self.timing, &mut self.events);
    }
}

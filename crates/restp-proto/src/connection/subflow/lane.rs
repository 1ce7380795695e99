//! A connection as one of several paths that share the numbers: the stream of the association is lent to the path that is asked,
//! with the path's lane in hand. What has a number, what is acknowledged and how it ends is the stream's; set-up, addresses,
//! liveness and marks are the path's. The first path founds the stream: until then it is an ordinary connection.

use crate::composition::Terms;
use crate::connection::eras::Eras;
use crate::connection::timers::STANDBY_INTERVAL;
use crate::connection::{Connection, State, outgoing, receive};
use crate::wire::Header;
use restp_base::time::{Duration, Time};
use restp_services::ack::AckTimer;
use restp_services::connection_management::Release;
use restp_services::framing::{Framing, SendQueue};
use restp_services::receiver::Receiver;
use restp_services::recovery::LaneId;
use restp_services::sender::{LaneShare, Sender};
use std::sync::Arc;

/// What all paths share.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) release: Release,
}

/// What a path may do of what concerns all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// What of the shared numbers it carries.
    pub(crate) share: LaneShare,
    /// Acknowledgements return by it.
    pub(crate) acknowledges: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Turn {
            share: LaneShare::All,
            acknowledges: true,
        }
    }
}

impl Connection {
    /// The numbers of its packets are those of the data: it is alone, or its paths share them.
    pub(in crate::connection) fn numbers_data(&self) -> bool {
        self.subflow.as_ref().is_none_or(|subflow| subflow.shares)
    }

    /// Its packets carry numbers that all paths share, if the peer agrees.
    pub(crate) fn shares_numbers(&self) -> bool {
        self.subflow.as_ref().is_some_and(|subflow| subflow.shares)
    }

    /// Which lane of the stream it is.
    pub(crate) fn lane(&self) -> Option<LaneId> {
        self.subflow.as_ref().and_then(|subflow| subflow.lane)
    }

    /// Its set-up is not complete.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.state, State::SynSent(_) | State::SynReceived(_))
    }

    /// Its SYN is out, and nothing of the peer is known on this path.
    pub(crate) fn awaits_answer(&self) -> bool {
        matches!(self.state, State::SynSent(_))
    }

    /// It may still have to acknowledge: it is established, or waits for retransmissions.
    pub(crate) fn says_what_arrived(&self) -> bool {
        matches!(self.state, State::Established | State::TimeWait { .. })
    }

    /// It takes the lane `id` of the stream.
    pub(crate) fn take_lane(&mut self, id: LaneId) {
        if let Some(subflow) = &mut self.subflow {
            subflow.lane = Some(id);
        }
    }

    /// The stream is in its hands, or is not any more.
    pub(crate) fn exchange_stream(&mut self, stream: &mut Stream) {
        std::mem::swap(&mut self.sender, &mut stream.sender);
        std::mem::swap(&mut self.receiver, &mut stream.receiver);
        std::mem::swap(&mut self.release, &mut stream.release);
    }

    /// The set-up is complete and the peer shares its numbers: what this connection has sent and received so far is the
    /// association's from now on, with what was `written` to it. Returns the stream.
    pub(crate) fn found_stream(&mut self, now: Time, written: SendQueue, ends: bool) -> Stream {
        let parameters = outgoing::parameters(&self.composition, self.services);
        let mut stream = Stream {
            sender: outgoing::sender(now, &self.composition, self.services, self.origin),
            receiver: receive::receiver(&self.composition),
            release: Release::default(),
        };
        self.exchange_stream(&mut stream);
        stream.sender.adopt(written, parameters);
        stream.sender.trust_blocks();
        if ends {
            stream.release.finish();
        }
        self.take_lane(LaneId::FIRST);
        stream
    }

    /// The number before the first one, which every SYN of the association carries.
    pub(crate) fn initial_number(&self) -> u32 {
        restp_base::sequence::truncate(self.origin - 1)
    }

    /// What a lane of this path is made of.
    pub(crate) fn lane_parts(&self) -> outgoing::LaneParts {
        outgoing::lane_parts(&self.composition)
    }

    /// What it may do in the turns to come.
    pub(crate) fn set_turn(&mut self, turn: Turn, paths: usize) {
        if let Some(subflow) = &mut self.subflow {
            subflow.turn = turn;
            subflow.k = paths.clamp(1, super::MAX_PATHS) as u8;
        }
    }
    pub(in crate::connection) fn lane_turn(&self) -> Turn {
        let subflow = self.subflow.as_ref().filter(|subflow| subflow.lane.is_some());
        subflow.map_or_else(Turn::default, |subflow| subflow.turn)
    }

    /// What its set-up measured, once.
    pub(crate) fn take_set_up_rtt(&mut self) -> Option<Duration> {
        self.subflow.as_mut()?.set_up_rtt.take()
    }

    /// An acknowledgement has to leave by this path, because it is asked for here.
    pub(in crate::connection) fn answer_here(&mut self) {
        if self.lane().is_some() {
            self.confirmation_due = true;
        } else {
            self.receiver.acknowledgement().on_urgent_once();
        }
    }

    /// It is silent: it is asked now, and once per timeout until it answers.
    pub(crate) fn doubt(&mut self, now: Time) {
        let interval = self.sender.timeout();
        if let Some(subflow) = &mut self.subflow {
            subflow.suspect = true;
            self.liveness.ask();
            self.liveness.ask_at(now + interval);
        }
    }

    /// It was too slow for what is sent, and carries nothing that could show whether it still is: it is asked now and then.
    pub(crate) fn ask_whether_still_slow(&mut self, now: Time) {
        if self.sender.is_quiet() {
            self.liveness.ask_each(now, STANDBY_INTERVAL);
        }
    }

    /// A keep-alive was answered within `rtt`: that measures a lane on which nothing else could be answered. One that is asked
    /// again and again tells nothing (Karn's rule), nor does a keep-alive of the peer's.
    pub(in crate::connection) fn measure_idle_lane(
        &mut self,
        now: Time,
        rtt: Duration,
        header: &Header,
        payload: &[u8],
    ) {
        let asked_once = self
            .subflow
            .as_ref()
            .is_some_and(|subflow| subflow.lane.is_some() && !subflow.suspect && !subflow.failed);
        let number = self.receiver.next().zip(header.sequence);
        let is_answer =
            number.is_some_and(|(next, number)| restp_base::sequence::expand(next, number) >= next);
        if asked_once && is_answer && payload.is_empty() && self.sender.is_quiet() {
            self.sender.measure_idle_lane(now, rtt);
        }
    }

    /// When its silence has lasted for `timeouts`, where nothing is outstanding on it whose timer would tell.
    pub(crate) fn silent_for(&self, timeouts: u32) -> Option<Time> {
        let asked_at = self.liveness.asked_at().filter(|_| self.sender.is_quiet())?;
        Some(asked_at + self.sender.timeout() * u64::from(timeouts))
    }

    /// The answer to our SYN agrees to everything but to shared numbers: each path has its own then, unless nothing could be given
    /// up on all paths without them.
    pub(in crate::connection) fn declines_sharing(&self, header: &Header) -> bool {
        let asked = self.awaits_answer() && self.services.shared_numbers && self.subflow.is_some();
        asked
            && !self.composition.reliability.is_partial()
            && self.services.numbered_per_path().agree(&header.services)
    }

    /// Nothing was sent or received yet, so this is as if it had never asked.
    pub(in crate::connection) fn number_per_path(&mut self) {
        self.services = self.services.numbered_per_path();
        self.eras = Eras::new(
            Terms::at_first(&self.composition, self.services),
            &self.composition,
        );
        self.eras.understood = false;
        if let Some(subflow) = &mut self.subflow {
            subflow.shares = false;
        }
        let below = Arc::new(self.composition.numbered_per_path().of_each_path());
        let ack = AckTimer::new(below.ack.schedule, below.ack.repeat);
        self.receiver.acknowledge_by(ack);
        self.adopt(SendQueue::new(Framing::Fixed), below);
        self.sender.bind_credit(false);
    }
}

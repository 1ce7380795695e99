//! Several lanes: paths that share the numbers, the data and the peer's credit, each with a window, a timer and losses of its
//! own. One lane is in hand, and every door speaks of that one; the others wait behind it. Reports, deadlines and the end
//! are of all lanes (split fast retransmit and the window of each destination: Iyengar, Amer and Stewart, ToN 14(5), 2006).

use super::Sender;
use super::ack_demand::AckDemand;
use super::lane::{Lane, Yielded};
use crate::congestion::{Congestion, CongestionEvent, Controller};
use crate::path_management::{PathMtu, RetransmitTarget};
use crate::recovery::{LaneId, Recovery, RtoParameters};
use crate::view::Sibling;
use restp_base::flow::LossCauses;
use restp_base::time::{Duration, Time};
use smallvec::SmallVec;

impl Sender {
    /// One lane more. What a lane loses is found by what overtakes it there, so reports must name what arrived; what is
    /// lost leaves again by whichever lane is asked first. `None` when there are 255, or where losses do not leave again.
    pub fn open_lane(
        &mut self,
        now: Time,
        recovery: Recovery,
        controller: Controller,
        rto: RtoParameters,
    ) -> Option<LaneId> {
        let id = self.parameters.retransmits.then(|| self.board.open_lane())??;
        let mtu = PathMtu::known(self.parameters.segment_bytes);
        let lane = Lane::new(now, rto, controller, mtu, recovery).judging(self.parameters.loss_handling);
        self.others.push(lane);
        Some(id)
    }

    /// The lane `id`, whose path has ended, is that of a new path of which nothing is known yet.
    pub fn renew_lane(
        &mut self,
        now: Time,
        id: LaneId,
        recovery: Recovery,
        controller: Controller,
        rto: RtoParameters,
    ) {
        let mtu = PathMtu::known(self.parameters.segment_bytes);
        let lane = Lane::new(now, rto, controller, mtu, recovery).judging(self.parameters.loss_handling);
        *self.lane_at_mut(id) = lane;
        self.board.renew_lane(id);
        if let Some(encoder) = &mut self.encoder {
            encoder.forget_lane(id);
        }
    }

    /// The path of the lane in hand is up; `rtt` is what its set-up measured.
    pub fn begin_lane(&mut self, now: Time, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.lane.rtt.sample(rtt);
        }
        (self.lane.answered_at, self.lane.active) = (now, true);
        self.lane.mtu.start(now);
    }

    /// What the lane in hand carries is late: it leaves again by others, and costs no window, because nobody knows yet what became
    /// of it. Returns how many segments that are.
    pub fn yield_lane(&mut self) -> u64 {
        let late = self.board.mark_all_late();
        let (timer, reports) = (self.lane.rto.deadline(), self.lane.reports);
        if let Some(expires_at) = timer.filter(|_| !self.lane.outage.state.is_active()) {
            self.lane.yielded = Some(Yielded { expires_at, reports });
        }
        self.lane.rto.stop();
        (self.lane.waits_since, self.lane.uncarried_since) = (None, None);
        self.lane.gate.stop_pacing();
        self.lane.tail.disarm();
        late
    }

    /// The lane in hand answers after all: what has not left by others meanwhile is on its way. `silence`: for how long it did not,
    /// which was a round trip if the answer is to something that it carried, and at most twice as long as the timer would have waited: a
    /// queue grows by steps, and what is longer tells of losses. Otherwise the path lives and nobody knows what became of
    /// that: the timer goes on where it was, or a lane that is asked and answers again and again would never find anything lost.
    pub fn resume_lane(&mut self, now: Time, silence: Option<Duration>) {
        let reports = self.lane.reports;
        let open = self.lane.yielded.take().filter(|then| then.reports == reports);
        // Encoded packets are answered as well, and what did not come is named: no timer has to find it, nor to doubt the path for it.
        let is_named = self.may_answer_encoded(now, Duration::ZERO);
        if is_named {
            self.lane.rto.on_progress();
        }
        let longest = self.timeout() * 2;
        if let Some(silence) = silence.filter(|silence| open.is_none() && *silence <= longest) {
            self.lane.rtt.sample(silence);
        }
        self.board.restore_late();
        (self.lane.uncarried_since, self.lane.resumed_at) = (None, now);
        if !self.established || self.board.is_quiet() {
            return;
        }
        match open.filter(|_| !is_named) {
            Some(then) => self.lane.rto.run_out_at(then.expires_at),
            None => self.lane.rto.start(now, &self.lane.rtt),
        }
    }

    /// Answers to what leaves by the lane in hand come another way from now on, because the path that brought some of them has gone: a
    /// longer round trip is no queue.
    pub fn on_route_change(&mut self, now: Time) {
        self.lane.rtt.forget_minimum();
        self.lane.ack_demand = AckDemand::default();
        let load = self.load(self.board.in_flight_bytes());
        self.lane.tell(now, &CongestionEvent::RouteChanged, load);
    }

    /// How long an answer on the lane in hand may take: as on average, or as the last one.
    pub fn expected_rtt(&self) -> Option<Duration> {
        self.lane.rtt.smoothed().max(self.lane.rtt.latest())
    }

    /// The path of the lane in hand is gone: what it carried leaves by others, and nothing is asked any more.
    pub fn close_lane(&mut self) {
        self.yield_lane();
        self.lane.active = false;
        self.lane.mtu = PathMtu::known(self.parameters.segment_bytes);
        self.lane.outage = Default::default();
    }

    /// Asks for the lane `id`: what may leave by it, what is known of it, what became of it. The lane that was in hand is so
    /// again afterwards, so a question may hold others.
    pub fn on<R>(&mut self, id: LaneId, ask: impl FnOnce(&mut Sender) -> R) -> R {
        let before = self.board.in_hand();
        self.take_in_hand(id);
        let answer = ask(self);
        self.take_in_hand(before);
        answer
    }

    /// From now on every door speaks of the lane `id`: for an owner that lends the sender to the path of that lane.
    pub fn take_in_hand(&mut self, id: LaneId) {
        self.swap_with(self.board.in_hand());
        self.swap_with(id);
        self.board.take_in_hand(id);
    }

    /// The first lane and the lane `id` change places.
    fn swap_with(&mut self, id: LaneId) {
        if let Some(index) = id.index().checked_sub(1) {
            std::mem::swap(&mut self.lane, &mut self.others[index]);
        }
    }

    /// Encoded packets leave by these lanes from now on.
    pub fn encode_over(&mut self, lanes: impl Iterator<Item = LaneId>) {
        if let Some(mut encoder) = self.encoder.take() {
            encoder.set_routes(lanes.map(|id| (id, self.lane_at(id).rtt.smoothed())));
            self.encoder = Some(encoder);
        }
    }

    /// Is the lane in hand used? By one that is not, nothing leaves again that another could take.
    pub fn set_active(&mut self, active: bool) {
        self.lane.active = active;
    }

    /// The lane in hand loses so many packets of a million, as the user says.
    pub fn expect_losses(&mut self, per_million: u32) {
        self.lane.losses_per_million = per_million;
    }

    /// Reports have room for every block, however the numbers of lanes interleave. A segment that fills a hole, which on a slow lane is
    /// nearly every one, tells its round trip then.
    pub fn trust_blocks(&mut self) {
        self.board.trust_blocks();
    }

    /// From now on the peer names what arrives twice (RFC 2883).
    pub fn expect_duplicates(&mut self) {
        self.board.expect_duplicates();
    }

    /// The lane in hand could carry more, and what carries data is chosen above: it is not its window that limits it.
    pub fn pass_over(&mut self, passed_over: bool) {
        self.lane.gate.set_passed_over(passed_over);
    }

    /// The next new segment has so many payload bytes at most.
    pub fn limit_new(&mut self, limit: Option<usize>) {
        self.new_limit = limit;
    }

    /// Does the lane in hand take `bytes` of new data now?
    pub fn takes_new(&mut self, now: Time, bytes: u64) -> bool {
        !self.lane.outage.state.is_active() && self.keeps_flight_limit(bytes) && self.has_room(now, bytes)
    }

    /// Payload bytes of the segment that would leave by the lane in hand next, where new data or the `fin` waits and the peer takes
    /// it.
    pub fn next_new_bytes(&self, fin: bool) -> Option<u64> {
        let waits = (fin || !self.queue.is_empty()) && !self.holds_new();
        let bytes = self.next_bytes();
        (waits && self.has_credit(bytes)).then_some(bytes)
    }

    /// The network has marked something that left by the lane in hand (RFC 3168 §6.1.2).
    pub fn on_lane_mark(&mut self, now: Time) {
        self.on_mark(now, self.board.in_flight_bytes());
    }

    /// Nothing that left by the lane in hand waits for an answer.
    pub fn is_quiet(&self) -> bool {
        self.board.is_quiet()
    }

    /// Reports with news of the lane in hand so far.
    pub fn lane_reports(&self) -> u64 {
        self.lane.reports
    }

    /// Something that was asked on the lane in hand was answered within `rtt`: it lives (RFC 9260 §8.3).
    pub fn on_echo(&mut self, rtt: Duration) {
        self.lane.rtt.sample(rtt);
        self.lane.rto.on_progress();
    }

    /// The lane in hand carries nothing, and answers within `rtt`: what was measured when it did says little now. Where encoded packets
    /// have left by it the answer may be to one of those.
    pub fn measure_idle_lane(&mut self, now: Time, rtt: Duration) {
        if !self.may_answer_encoded(now, rtt) {
            self.lane.rtt.restart(rtt);
        }
    }

    /// What comes by the lane in hand now, or came within `lately`, may answer an encoded packet.
    fn may_answer_encoded(&self, now: Time, lately: Duration) -> bool {
        let left = self.lane.redundancy.last_left();
        left.is_some_and(|left| now.since(left) <= lately + self.timeout())
    }

    /// The lowest lost number that leaves again by the lane in hand, and which lane lost it.
    pub(super) fn next_lost(&self) -> Option<(u64, LaneId)> {
        let here = self.board.in_hand();
        if !self.has_several_lanes() {
            return self.board.next_lost().map(|number| (number, here));
        }
        let all: SmallVec<[_; 4]> = self.lanes().map(|id| self.lane_at(id).destination()).collect();
        let is_ours = |lost_on: usize, is_late: bool| {
            let target = self.parameters.retransmit_target.choose(lost_on, is_late, &all);
            target.is_none_or(|target| target == here.index())
        };
        let ours = |id: LaneId| [false, true].map(|is_late| is_ours(id.index(), is_late));
        let ours: SmallVec<[_; 4]> = self.lanes().map(ours).collect();
        let mut lost = self.board.lost_by_lane();
        lost.find(|(number, lost_on)| ours[lost_on.index()][usize::from(self.board.is_late(*number))])
    }

    /// Once per loss event on the lane `lost_on` a retransmission leaves whatever the window says. Where any lane with room
    /// will do, that is the lane's own.
    pub(super) fn takes_retransmission_at_once(&mut self, lost_on: LaneId) -> bool {
        let of = match self.parameters.retransmit_target {
            RetransmitTarget::Asap => self.board.in_hand(),
            _ => lost_on,
        };
        self.lane_at_mut(of).gate.takes_retransmission_at_once()
    }

    /// Segments declared lost on the lane `id`.
    pub fn lost_on(&self, id: LaneId) -> u64 {
        self.lane_at(id).lost_packets
    }
    /// Times that losses on the lane `id` cut its window, timeouts apart.
    pub fn cuts_on(&self, id: LaneId) -> u64 {
        self.lane_at(id).cuts
    }
    /// Why segments were lost on the lane `id`, where its sender finds that out.
    pub fn causes_on(&self, id: LaneId) -> Option<LossCauses> {
        self.lane_at(id).cutting.as_ref().map(|cutting| cutting.counts())
    }
    /// What the controller of the lane `id` does of its own accord, for diagnostics only.
    pub fn mode_on(&self, id: LaneId) -> &'static str {
        self.lane_at(id).controller.snapshot().state
    }
    /// Smoothed round-trip time of the lane `id`.
    pub fn smoothed_rtt_of(&self, id: LaneId) -> Option<Duration> {
        self.lane_at(id).rtt.smoothed()
    }
    /// The longest smoothed round-trip time of the lanes that are used.
    pub fn longest_rtt(&self) -> Option<Duration> {
        let lanes = std::iter::once(&self.lane).chain(&self.others);
        let used = |lane: &&Lane| lane.active && !lane.outage.state.is_active();
        let used = lanes.filter(used).filter_map(|lane| lane.rtt.smoothed()).max();
        used.or(self.lane.rtt.smoothed())
    }
    /// The congestion window of the lane `id`.
    pub fn window_of(&self, id: LaneId) -> u64 {
        self.lane_at(id).controller.window_bytes()
    }
    /// The congestion windows of all lanes.
    pub fn total_window_bytes(&self) -> u64 {
        let windows = self.lanes().map(|id| self.lane_at(id).controller.window_bytes());
        windows.sum()
    }
    /// Segments believed to be in the network, by whichever lane.
    pub fn total_in_flight(&self) -> u64 {
        self.lanes().map(|id| self.board.lane(id).in_flight()).sum()
    }

    /// What others may know of the lane `id`.
    pub fn sibling_of(&self, id: LaneId) -> Option<Sibling> {
        self.lane_at(id).as_sibling()
    }

    fn lane_at(&self, id: LaneId) -> &Lane {
        match self.place_of(id) {
            None => &self.lane,
            Some(index) => &self.others[index],
        }
    }
    fn lane_at_mut(&mut self, id: LaneId) -> &mut Lane {
        match self.place_of(id) {
            None => &mut self.lane,
            Some(index) => &mut self.others[index],
        }
    }

    /// Where the lane `id` is among the others: the first one waits in the place of the one in hand.
    fn place_of(&self, id: LaneId) -> Option<usize> {
        let here = self.board.in_hand();
        (id != here).then(|| id.index().checked_sub(1).unwrap_or(here.index().wrapping_sub(1)))
    }

    /// Every lane, the first one first.
    pub(super) fn lanes(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..=self.others.len()).map(LaneId::nth)
    }

    /// Asks each lane in turn.
    pub(super) fn each_lane(&mut self, mut ask: impl FnMut(&mut Sender)) {
        for id in self.lanes() {
            self.on(id, &mut ask);
        }
    }

    /// Several paths share the numbers.
    pub(super) fn has_several_lanes(&self) -> bool {
        !self.others.is_empty()
    }
}

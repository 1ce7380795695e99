//! One connection over several paths (ResTP §3.3, §3.1.13; RFC 8684 §3.3): each path has numbers, repairs and a window of its
//! own; here is what they share. The data have numbers of the connection, of segments or of bytes, are kept until the peer
//! acknowledges these, and are given to paths by a scheduler; what arrives on any path is put in order; both directions end
//! once. A protocol adds a codec, the set-up of paths, and what it thinks of their health.
//!
//! | Part | What it answers | File |
//! |---|---|---|
//! | [`Multipath`] | how far has the connection come, who sends next, when to come back? | here |
//! | [`DataSender`] | which path takes what, what is given to another one, when is a shut window probed, how do the data end? | `sender/` |
//! | [`DataReceiver`] | what becomes of data of any path, and how much more may come? | `receiver` |
//! | [`LaneScheduler`] | which path takes the next data, where all share one space of numbers and one sender? | `lanes` |
//! | [`Paths`] | which path is best, which may data use, what do they know of each other? | `paths`, `known`, `survey`, `bottleneck` |

mod bottleneck;
mod known;
mod lanes;
mod paths;
mod receiver;
mod sender;
mod survey;

pub use lanes::{LanePath, LaneScheduler, Written};
pub use paths::Paths;
pub use receiver::DataReceiver;
pub use sender::{DataSender, DataSenderParameters, Numbering, Reinjection};

use crate::connection_management::{Notice, Release};
use crate::ordering::Arrival;
use crate::receiver::Contradiction;
use crate::sender::Sender;
use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowStats, PathState, Read, WriteError};
use restp_base::machine::{Datagram, PathAddress, Wakeup};
use restp_base::observe::Loss;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// How long a path may still say its own end after the connection's: one segment lifetime (OP-61). A path that carries
/// one direction only would say it for ever.
const LINGER: Duration = Duration::from_secs(30);

/// One path, as its connection sees it.
pub trait Path {
    /// Round trip that is assumed of a path before it was measured.
    const UNMEASURED_RTT: Duration;

    /// The sender of its own numbers.
    fn sender(&self) -> &Sender;
    /// Smoothed round-trip time.
    fn smoothed_rtt(&self) -> Option<Duration> {
        self.sender().smoothed_rtt()
    }
    /// The same, to be told.
    fn sender_mut(&mut self) -> &mut Sender;
    /// Where it runs.
    fn address(&self) -> PathAddress;
    /// It carries nothing any more.
    fn is_over(&self) -> bool;
    /// Nothing is left to do on it.
    fn is_closed(&self) -> bool;
    /// How well it works, and whether it is a backup: the least is the best, none is not up.
    fn standing(&self) -> Option<(u8, bool)>;
    /// May data use it? Only the paths of the least rank are used; `copies`: for data that others carry as well.
    fn rank(&self, copies: bool) -> Option<u8>;
    /// Its place in the list of configured shares, where its ordinal is `ordinal`.
    fn share(&self, ordinal: usize) -> usize {
        ordinal
    }
    /// Payload bytes of a segment that it may have to carry later; none where it does not count.
    fn segment_bytes(&self) -> Option<u32>;
    /// Payload bytes that a segment may have on it now.
    fn largest_segment_bytes(&self) -> u32;
    /// Has it room for a segment of `bytes`?
    fn takes(&mut self, now: Time, bytes: u64) -> bool;
    /// Takes the data `number` of the connection, which leave with the next packet. Returns the path's own number for them.
    fn assign(&mut self, now: Time, number: u64, payload: Bytes) -> u64;
    /// Numbers of the connection that it was given and that the peer has not acknowledged on it.
    fn carried(&self) -> impl Iterator<Item = u64> + '_;
    /// An acknowledgement leaves with the next turn, because the connection has news.
    fn acknowledge_soon(&mut self);
    /// The next acknowledgement says that our data end at `fin`, and leaves now.
    fn announce_end(&mut self, fin: u64);
    /// Asks without data whether the peer's window is still shut. False where only data can ask.
    fn asks_window(&mut self) -> bool;
    /// Breaks it off.
    fn abort(&mut self, now: Time);
    /// Writes its next packet into `out`; false when there is none now.
    fn poll_transmit(&mut self, now: Time, shared: &Shared, out: &mut Datagram) -> bool;
    /// When it wants to be woken, and why. `judged`: the connection is established, so that its silence counts.
    fn deadline(&self, judged: bool) -> Option<(Time, Wakeup)>;
    /// Adds what it counted.
    fn count(&self, total: &mut FlowStats);
}

/// Where the connection stands: what every packet of every path says of it, and what arrivals are held to.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Lowest number of the peer's data that has not arrived; none before its first number is known.
    pub next: Option<u64>,
    /// Segments or bytes from there on that we take.
    pub window: u64,
    /// First number beyond everything ever allowed.
    pub edge: u64,
    /// Paths that are up.
    pub paths: usize,
}

/// How far the connection has come. Each path has states of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No path is established yet.
    Opening,
    Established,
    /// The application has been told that it is over; the paths end on their own.
    Over,
}

/// What the paths of a connection share.
#[derive(Debug)]
pub struct Multipath<P> {
    paths: Paths<P>,
    tx: DataSender,
    rx: DataReceiver,
    release: Release,
    phase: Phase,
    notices: VecDeque<Notice>,
    opened_here: bool,
    opened_at: Time,
    /// The application knows of it, and will let it go.
    announced: bool,
    /// It is over: when paths that still have something to say are broken off.
    breaks_at: Option<Time>,
    /// Of the connection itself, and of paths that are gone.
    counters: FlowStats,
}

impl<P: Path> Multipath<P> {
    /// A connection without paths. `coupled`: their congestion controls look at each other (RFC 6356 §3).
    pub fn new(now: Time, opened_here: bool, tx: DataSender, rx: DataReceiver, coupled: bool) -> Self {
        Multipath {
            paths: Paths::new(coupled),
            tx,
            rx,
            release: Release::default(),
            phase: Phase::Opening,
            notices: VecDeque::new(),
            opened_here,
            opened_at: now,
            announced: opened_here,
            breaks_at: None,
            counters: FlowStats::default(),
        }
    }

    /// No path is established yet.
    pub fn is_opening(&self) -> bool {
        self.phase == Phase::Opening
    }
    /// A path was established, and nothing has ended it.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }
    /// The application has been told that it is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }
    /// Nothing is left to do, on any path.
    pub fn is_closed(&self) -> bool {
        self.is_over() && self.paths.iter().all(P::is_closed)
    }
    /// The peer opened it, and its set-up is not complete.
    pub fn is_half_open(&self) -> bool {
        !self.opened_here && self.is_opening()
    }
    /// This side opened it.
    pub fn is_opened_here(&self) -> bool {
        self.opened_here
    }
    /// The application has never heard of it, so it will not let it go either.
    pub fn is_unknown(&self) -> bool {
        !self.announced
    }
    /// The paths, by their ordinals.
    pub fn paths(&self) -> &Paths<P> {
        &self.paths
    }
    /// The same, to be changed.
    pub fn paths_mut(&mut self) -> &mut Paths<P> {
        &mut self.paths
    }
    /// What is to be sent.
    pub fn sender(&self) -> &DataSender {
        &self.tx
    }
    /// The same, to be told what the peer takes.
    pub fn sender_mut(&mut self) -> &mut DataSender {
        &mut self.tx
    }
    /// What has arrived.
    pub fn receiver(&self) -> &DataReceiver {
        &self.rx
    }
    /// The same, to be told where the peer's numbers begin.
    pub fn receiver_mut(&mut self) -> &mut DataReceiver {
        &mut self.rx
    }
    /// Counters of what no path counts.
    pub fn counters(&mut self) -> &mut FlowStats {
        &mut self.counters
    }
    /// The application has something to hear.
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }
    /// Moves the next notice out; changes nothing else.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// A path is established. True when it is the first, and with it the connection.
    pub fn establish(&mut self, now: Time) -> bool {
        let first = self.is_opening();
        if first {
            (self.phase, self.announced) = (Phase::Established, true);
            self.paths.forget();
            self.counters.handshake = Some(now.since(self.opened_at));
            self.notices.push_back(Notice::established(self.opened_here));
        }
        first
    }

    /// Tells the application what became of a path, once.
    pub fn tell(&mut self, ordinal: usize, state: PathState) {
        self.notices.extend(self.paths.tell(ordinal, state));
    }

    /// Takes data to send, on `path` if the application chose one. See [`restp_base::flow::Flow::write_on`].
    ///
    /// # Errors
    /// When there is no room, the message is too large, or the connection is closed for writing.
    pub fn write(&mut self, data: Bytes, path: Option<PathAddress>) -> Result<(), WriteError> {
        if self.release.is_wanted() || self.is_over() {
            return Err(WriteError::Closed);
        }
        self.tx.write(data, path, self.paths.up())
    }

    /// Takes the next data for the reader. When that makes room a sender that believes there is none is told, on the path
    /// most likely to arrive.
    pub fn read(&mut self) -> Read {
        if let Some(data) = self.rx.read() {
            self.counters.delivered_bytes += data.len() as u64;
            self.counters.delivered_messages += 1;
            if self.is_established() && self.rx.update_is_due() {
                self.acknowledge_soon();
            }
            return Read::Data(data);
        }
        if self.release.remote_finished() || self.is_over() {
            Read::End
        } else {
            Read::Empty
        }
    }

    /// News leave as an acknowledgement on the best path.
    pub fn acknowledge_soon(&mut self) {
        if let Some(best) = self.paths.best() {
            self.paths[best].acknowledge_soon();
        }
    }

    /// No more writes will come.
    pub fn finish(&mut self) {
        self.release.finish();
    }

    /// The application has lost interest: what is unread is dropped, and with `from_now_on` what comes as well.
    pub fn discard(&mut self, from_now_on: bool) {
        self.rx.discard(from_now_on);
    }

    /// Tells the application.
    pub fn note(&mut self, notice: Notice) {
        self.notices.push_back(notice);
    }

    /// What the path carries and the peer has not acknowledged is given to another one, whenever one can take it.
    pub fn place_again(&mut self, ordinal: usize) {
        self.tx.place_again(&self.paths[ordinal]);
    }

    /// The same of a path that went silent: the peer may have none of it, so it is urgent. `half`: the lowest number that left
    /// so late that it died with both directions, where that may be.
    pub fn reinject(&mut self, ordinal: usize, half: Option<u64>) {
        self.place_again(ordinal);
        self.tx.hurry(half);
    }

    /// What was given to the path and has not left waits to be placed again: these numbers. Those that it would have had there
    /// will be others'.
    pub fn take_back(&mut self, ordinal: usize, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.tx.take_back(ordinal, number);
        }
    }

    /// The path has ended: what it carried is carried by nobody, and its ordinal may be given again.
    pub fn forget_path(&mut self, ordinal: usize) {
        self.tx.forget_path(ordinal);
    }

    /// Everything below `number` has arrived at the peer, and `window` from there on may come. False when that was never
    /// sent.
    pub fn on_data_ack(&mut self, number: u64, window: Option<u64>) -> bool {
        let believed = self.tx.on_data_ack(number, window);
        if believed {
            self.release.acknowledged(number);
        } else {
            self.counters.rejected_packets += 1;
        }
        believed
    }

    /// Data of some path, by their number; see [`crate::receiver::Receiver::on_segment`]. `Ok(true)` when the peer's data are
    /// complete with them.
    ///
    /// # Errors
    /// When they contradict what is known of the end; that is counted.
    pub fn on_data(&mut self, now: Time, number: u64, payload: Bytes) -> Result<bool, Contradiction> {
        let arrival = self.rx.on_data(now, number, payload);
        self.hand_up(now, arrival)
    }

    /// The peer's data end at `number`. `Ok(true)` when they are complete.
    ///
    /// # Errors
    /// As [`Multipath::on_data`].
    pub fn on_data_fin(&mut self, now: Time, number: u64) -> Result<bool, Contradiction> {
        let arrival = self.rx.on_fin(number);
        self.hand_up(now, arrival)
    }

    /// New data for the reader, and perhaps the end.
    fn hand_up(&mut self, now: Time, arrival: Result<Arrival, Contradiction>) -> Result<bool, Contradiction> {
        match arrival {
            Ok(Arrival::Duplicate | Arrival::Late) => self.counters.duplicate_packets += 1, // came over two paths
            Ok(Arrival::BeyondWindow) | Err(Contradiction) => self.counters.rejected_packets += 1,
            Ok(Arrival::InOrder | Arrival::FilledHole | Arrival::OutOfOrder) => {}
        }
        arrival?;
        let end = self.rx.end(now).filter(|_| !self.release.remote_finished());
        if let Some(end) = end {
            self.release.fin_received(end);
        }
        if self.rx.has_news(end.is_some()) {
            self.notices.push_back(Notice::Readable);
        }
        Ok(end.is_some())
    }

    /// Both directions are over. True when that ends the connection now: its paths are left to be ended.
    pub fn concludes(&mut self, now: Time) -> bool {
        let concludes = self.is_established() && self.release.is_complete();
        if concludes {
            self.end(now, CloseReason::Finished);
        }
        concludes
    }

    /// Ends the connection for the application.
    pub fn end(&mut self, now: Time, reason: CloseReason) {
        if self.is_over() {
            return;
        }
        if self.announced {
            self.notices.push_back(Notice::Closed(reason));
        }
        self.phase = Phase::Over;
        self.paths.forget();
        self.breaks_at = Some(now + LINGER);
        self.tx.stop();
    }

    /// Ends it, and breaks off every path.
    pub fn break_off(&mut self, now: Time, reason: CloseReason) {
        self.end(now, reason);
        self.paths.iter_mut().for_each(|path| path.abort(now));
    }

    /// What every path says of the connection now.
    pub fn shared(&self) -> Shared {
        self.rx.shared(self.paths.up())
    }

    /// Writes the next packet into `out`: whatever a path has to say for itself first, then data whose path is in doubt, then
    /// new data. Returns whose packet it is; none when there is nothing to send now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> Option<usize> {
        let sent = self.poll_paths(now, out);
        if sent.is_none() {
            self.paths.keep(self.is_established());
        }
        sent
    }

    fn poll_paths(&mut self, now: Time, out: &mut Datagram) -> Option<usize> {
        let shared = self.shared();
        if let Some(ordinal) = self.paths.poll_own(now, &shared, out) {
            self.rx.on_sent(&shared);
            return Some(ordinal);
        }
        if self.is_over() || self.is_opening() && !self.tx.sends_early() {
            return None;
        }
        let chosen = self.tx.place(now, &mut self.paths);
        self.wake_writer();
        for ordinal in chosen {
            if self.poll_path(now, ordinal, out) {
                return Some(ordinal);
            }
        }
        let asks = self.tx.ask_or_end(now, &mut self.paths, &mut self.release);
        self.wake_writer();
        asks.filter(|ordinal| self.poll_path(now, *ordinal, out))
    }

    fn poll_path(&mut self, now: Time, ordinal: usize, out: &mut Datagram) -> bool {
        let shared = self.shared();
        let sent = self.paths.poll(now, ordinal, &shared, out);
        if sent {
            self.rx.on_sent(&shared);
        }
        sent
    }

    fn wake_writer(&mut self) {
        if self.tx.takes_writes_again(self.paths.up()) {
            self.notices.push_back(Notice::Writable);
        }
    }

    /// The earliest deadline of the paths and of what they share, and why.
    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        // Nothing can be asked or ended without a path that is up.
        let works = self.is_established() && self.paths.up() > 0;
        let ends = || self.paths.iter().any(|path| !path.is_over());
        let breaks_at = self.breaks_at.filter(|_| ends());
        let shared = self
            .tx
            .deadline(works, self.release.unacknowledged_fin().is_some());
        let paths = self.paths.deadline(self.is_established());
        paths
            .into_iter()
            .chain(shared)
            .chain(breaks_at.map(|at| (at, Wakeup::Expiry)))
            .min()
    }

    /// Acts on the shared deadlines that have come. The paths' own are their protocol's.
    pub fn on_deadline(&mut self, now: Time) {
        if self.breaks_at.is_some_and(|at| at <= now) {
            self.paths.iter_mut().for_each(|path| path.abort(now));
        }
        if let Some(waited) = self.tx.stalled_too_long(now) {
            self.break_off(now, CloseReason::TimedOut(waited));
        }
    }

    /// All paths, for who changes nothing that one of them says: what is known of them stays.
    pub fn observed(&mut self) -> std::slice::IterMut<'_, P> {
        self.paths.observed()
    }

    /// See [`restp_base::flow::Flow::take_losses`].
    pub fn take_losses(&mut self, into: &mut Vec<Loss>) {
        for path in self.observed() {
            let address = path.address();
            path.sender_mut().take_losses(|_| address, into);
        }
    }

    /// Counters of the connection and its paths; estimates are those of the best path.
    pub fn stats(&self) -> FlowStats {
        let mut total = self.counters.clone();
        self.paths.iter().for_each(|path| path.count(&mut total));
        self.tx.count(&mut total);
        // Deliveries are the connection's: paths hand nothing to a reader.
        total.delivered_bytes = self.counters.delivered_bytes;
        total.delivered_messages = self.counters.delivered_messages;
        let best = self.paths.best().map(|best| &self.paths[best]);
        total.path = best.map(P::address);
        total.srtt = best.and_then(P::smoothed_rtt);
        total.memory_bytes += (size_of::<Self>() + self.tx.memory() + self.rx.memory()) as u64;
        total
    }
}

#[cfg(test)]
mod tests;

//! What waits to be sent over a connection, or for another one. A datagram that cannot leave while it is of use is dropped here:
//! behind a bottleneck only what is in time is worth its place.

use super::message::Message;
use super::seldom::Seldom;
use super::{check_fitness, deadline_of};
use crate::backlog::{Backlog, LOOK};
use crate::output::note;
use crate::pipe::Answer;
use bytes::Bytes;
use restp::{Connection, FlowStats, SendError};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a datagram without a deadline waits: what the queue of a router holds (RFC 8290 §4.1 reckons with 100 ms).
const WAIT: Duration = Duration::from_millis(100);

/// How long one without a deadline waits for another connection: until a server that was lost is asked again, and a second for a set-up of
/// which the first packet is lost (RFC 6298 (2.1)).
const SET_UP: Duration = Duration::from_secs(3);

/// Most bytes that wait: 100 ms at 80 Mbit/s.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// How often idle flows are looked for.
pub const SWEEP: Duration = Duration::from_secs(10);

/// What a message that waits takes beside its bytes: many small ones must not take many times as much as large ones.
const MESSAGE_BYTES: usize = 64;

/// What a message takes while it waits.
fn cost(message: &Bytes) -> usize {
    message.len() + MESSAGE_BYTES
}

/// Messages in order, each with the moment at which it came.
#[derive(Default)]
struct Messages {
    in_order: VecDeque<(Instant, Bytes)>,
    bytes: usize,
}

impl Messages {
    fn push(&mut self, (came, message): (Instant, Bytes)) {
        self.bytes += cost(&message);
        self.in_order.push_back((came, message));
    }

    fn pop(&mut self) -> Option<(Instant, Bytes)> {
        let first = self.in_order.pop_front()?;
        self.bytes -= cost(&first.1);
        Some(first)
    }

    /// Those that came more than `span` ago are of no use any more.
    fn expire(&mut self, now: Instant, span: Duration) {
        let is_old = |first: &(Instant, Bytes)| now - first.0 > span;
        while self.in_order.front().is_some_and(is_old) {
            self.pop();
        }
    }
}

/// What waits for a connection.
#[derive(Default)]
pub struct Outlet {
    waiting: Messages,
    /// What the connection took last, as long as another one may carry it in its place.
    taken: Messages,
    backlog: Backlog,
    /// Packets that it has received.
    heard: u64,
    /// Since when there is one.
    since: Option<Instant>,
    /// How long a datagram is of use, if that is known, and how long what waits here waits for another connection.
    deadline: Option<Duration>,
    wait_for_another: Duration,
    /// The longest round trip of the paths.
    round_trip: Duration,
    /// Most bytes of a message.
    limit: usize,
    /// Of the next datagram that takes several messages.
    number: u8,
    dropped: u64,
    told: Seldom,
}

impl Outlet {
    /// What waits goes over `connection`, which is established, unless it has waited for it for too long. `is_renewed`: should it be
    /// lost, another one takes its place.
    ///
    /// # Errors
    /// When its composition carries no datagrams.
    pub fn begin(&mut self, connection: &Connection, is_renewed: bool) -> Result<(), String> {
        let composition = connection.composition().ok_or("the connection is over")?;
        check_fitness(&composition)?;
        let deadline = deadline_of(&composition).map(|deadline| Duration::from_nanos(deadline.as_nanos()));
        self.deadline = deadline;
        self.wait_for_another = match is_renewed {
            true => deadline.unwrap_or(SET_UP),
            false => Duration::ZERO,
        };
        self.limit = composition.payload_bytes();
        let stats = connection.stats();
        self.backlog = Backlog::of(&stats);
        self.heard = stats.received_packets;
        let now = Instant::now();
        self.since = Some(now);
        self.waiting.expire(now, self.wait_for_another);
        Ok(())
    }

    /// The connection is lost: what it took last waits for another one, before what has waited for it.
    pub fn on_lost(&mut self) {
        let waited = std::mem::replace(&mut self.waiting, std::mem::take(&mut self.taken));
        self.since = None;
        waited.in_order.into_iter().for_each(|one| self.add(one));
    }

    /// Takes a datagram of `flow`. When there is no room the oldest is dropped.
    pub fn push(&mut self, flow: u16, datagram: &[u8]) {
        let messages = Message::of_datagram(flow, datagram, self.number, self.limit);
        if messages.len() > 1 {
            // Others have none: what is left of one would be mixed with the next of the same number soon.
            self.number = self.number.wrapping_add(1);
        }
        let now = Instant::now();
        messages.into_iter().for_each(|message| self.add((now, message)));
    }

    fn add(&mut self, message: (Instant, Bytes)) {
        self.waiting.push(message);
        while self.waiting.bytes > MAX_WAITING_BYTES {
            self.drop_one();
        }
    }

    /// Answers a request again.
    pub fn answer(&mut self, answer: Option<&Answer>) {
        if let Some(answer) = answer {
            self.say(Message::Answer(answer.clone()));
        }
    }

    /// Says that `flow` is over.
    pub fn end(&mut self, flow: u16) {
        self.say(Message::End { flow });
    }

    fn say(&mut self, message: Message) {
        self.add((Instant::now(), message.encode()));
    }

    /// One message less. Whoever sends more than the path carries is told so, now and then.
    fn drop_one(&mut self) {
        self.waiting.pop();
        self.dropped += 1;
        if self.since.is_some() && self.told.is_due(Instant::now()) {
            note(format!(
                "{} datagrams were dropped so far: more come than this path carries in time; send less, or use more paths",
                self.dropped
            ));
        }
    }

    /// Sends what waits, for ever. Can be dropped and called again at any time.
    pub async fn run(&mut self, connection: &Connection) {
        loop {
            let Some((came, message)) = self.waiting.in_order.front().cloned() else {
                if self.taken.in_order.is_empty() {
                    return std::future::pending().await;
                }
                sleep(WAIT).await; // an acknowledgement may take that long
                self.forget_arrived(&connection.stats(), Instant::now());
                continue;
            };
            let until = self.since.map_or(came, |since| came.max(since)) + self.wait();
            if until <= Instant::now() {
                self.drop_one();
            } else if self.holds_enough(connection) {
                sleep(LOOK).await;
            } else {
                let bytes = message.len();
                match timeout_at(until, connection.send(message)).await {
                    // It is too late for it: dropped in the next turn.
                    Err(_) => {}
                    Ok(Ok(())) => {
                        let now = Instant::now();
                        self.backlog.take(bytes, now);
                        self.keep_first(|| connection.stats(), now);
                    }
                    Ok(Err(SendError::Rejected(_))) => drop(self.waiting.pop()),
                    Ok(Err(_)) => return std::future::pending().await,
                }
            }
        }
    }

    /// The connection has taken the first one, and has counted `stats`. It is kept where another connection may carry it.
    fn keep_first(&mut self, stats: impl FnOnce() -> FlowStats, now: Instant) {
        let first = self.waiting.pop();
        if !self.wait_for_another.is_zero() {
            first.into_iter().for_each(|first| self.taken.push(first));
            self.forget_arrived(&stats(), now);
        }
    }

    /// What the connection took is kept as long as another one may carry it in time, and until the peer is heard and it is not on its
    /// way any more: it has arrived then, or is lost as any datagram may be.
    fn forget_arrived(&mut self, stats: &FlowStats, now: Instant) {
        self.taken.expire(now, self.wait_for_another);
        let is_heard = stats.received_packets > self.heard;
        self.heard = stats.received_packets;
        let on_its_way = stats.in_flight_segments as usize + self.backlog.unsent(stats);
        while is_heard && self.taken.in_order.len() > on_its_way || self.taken.bytes > MAX_WAITING_BYTES {
            self.taken.pop();
        }
    }

    /// How long a datagram may wait here: what its deadline leaves beside the time in the connection and on the way. Where more comes than
    /// the paths carry, all of it would be late otherwise. At most a half, which leaves the other one for repairs.
    fn wait(&self) -> Duration {
        self.deadline.map_or(WAIT, |deadline| {
            let left = deadline.saturating_sub(self.most_held() + self.round_trip);
            left.clamp(deadline / 8, deadline / 2)
        })
    }

    /// How long a datagram may be held by the connection, where nothing is dropped for its age.
    fn most_held(&self) -> Duration {
        self.deadline.map_or(WAIT / 2, |deadline| deadline / 4)
    }

    /// Does the connection hold so much that it may take that time?
    fn holds_enough(&mut self, connection: &Connection) -> bool {
        // The window of a path that has died counts there until what waits is old: twice as much may have been taken by then.
        let most = self.most_held() / 2;
        let stats = || {
            let stats = connection.stats();
            self.round_trip = longest_round_trip(&stats);
            stats
        };
        self.backlog.is_enough(stats, Instant::now(), most, self.limit)
    }
}

/// Of all paths, as smoothed.
fn longest_round_trip(stats: &FlowStats) -> Duration {
    let paths = stats.paths.iter().map(|path| path.srtt);
    let longest = paths.chain([stats.srtt]).flatten().max().unwrap_or_default();
    Duration::from_nanos(longest.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::super::message::Assembly;
    use super::*;

    fn outlet(limit: usize) -> Outlet {
        Outlet {
            wait_for_another: SET_UP,
            limit,
            ..Outlet::default()
        }
    }

    #[test]
    fn what_is_left_of_a_datagram_is_not_mixed_with_one_after_many_small_ones() {
        let mut outlet = outlet(50);
        outlet.push(1, &[1; 130]);
        (0..255).for_each(|_| outlet.push(1, &[2]));
        outlet.push(1, &[3; 130]);
        let messages: Vec<_> = outlet
            .waiting
            .in_order
            .iter()
            .map(|(_, message)| message)
            .collect();
        assert_eq!(messages.len(), 3 + 255 + 3);
        // The last part of the first one is lost, and the second part of the other one.
        let mut assembly = Assembly::default();
        for (index, message) in messages.into_iter().enumerate() {
            if index != 2 && index != 3 + 255 + 1 {
                let message = Message::decode(message).expect("a message");
                assert_eq!(assembly.take(&message), None);
            }
        }
    }

    #[test]
    fn small_datagrams_that_wait_take_no_more_memory_than_large_ones() {
        let mut outlet = outlet(1338);
        (0..100_000).for_each(|_| outlet.push(1, &[]));
        assert!(outlet.waiting.in_order.len() <= MAX_WAITING_BYTES / MESSAGE_BYTES);
        assert!(outlet.dropped > 0);
        while outlet.waiting.pop().is_some() {}
        assert_eq!(outlet.waiting.bytes, 0);
    }

    fn waiting(outlet: &Outlet) -> Vec<u8> {
        let messages = outlet.waiting.in_order.iter();
        messages.map(|(_, message)| message[message.len() - 1]).collect()
    }

    /// The connection takes one, has received so many packets so far, and has so many segments in flight.
    fn take(outlet: &mut Outlet, received_packets: u64, in_flight_segments: u64) {
        let stats = FlowStats {
            received_packets,
            in_flight_segments,
            ..FlowStats::default()
        };
        outlet.keep_first(|| stats, Instant::now());
    }

    #[test]
    fn what_a_connection_took_and_has_no_sign_of_waits_for_another_one() {
        let mut outlet = outlet(1338);
        (0..7).for_each(|number| outlet.push(0, &[number]));
        take(&mut outlet, 1, 1);
        take(&mut outlet, 1, 2);
        take(&mut outlet, 2, 1); // the peer is heard: the first two have come
        take(&mut outlet, 2, 2);
        take(&mut outlet, 2, 0); // they are taken for lost, as nothing is heard
        outlet.on_lost();
        outlet.push(0, &[7]);
        assert_eq!(waiting(&outlet), [2, 3, 4, 5, 6, 7]);
        assert_eq!(outlet.taken.bytes, 0);
    }

    #[test]
    fn the_oldest_leave_first_where_there_is_no_room_or_they_are_too_old() {
        let mut outlet = outlet(1338);
        (0..=255).for_each(|number| outlet.push(0, &[number; 20_000]));
        assert_eq!(waiting(&outlet).last(), Some(&255));
        assert_ne!(waiting(&outlet).first(), Some(&0));
        let last = outlet.waiting.in_order.back().map(|(came, _)| *came);
        let last = last.expect("one waits");
        outlet.waiting.expire(last + SET_UP, SET_UP);
        assert_eq!(waiting(&outlet).last(), Some(&255));
        outlet.waiting.expire(last + SET_UP + LOOK, SET_UP);
        assert_eq!(outlet.waiting.bytes, 0);
    }

    #[test]
    fn nothing_is_kept_where_there_will_be_no_other_connection() {
        let mut outlet = outlet(1338);
        outlet.wait_for_another = Duration::ZERO;
        outlet.push(0, &[1]);
        outlet.keep_first(|| panic!("nobody looks"), Instant::now());
        assert_eq!(outlet.taken.bytes, 0);
    }

    #[test]
    fn a_datagram_waits_no_longer_than_its_way_leaves_it() {
        let ms = Duration::from_millis;
        let wait = |deadline, round_trip| {
            let outlet = Outlet {
                deadline,
                round_trip: ms(round_trip),
                ..outlet(1000)
            };
            (outlet.wait(), outlet.most_held())
        };
        assert_eq!(wait(Some(ms(400)), 60), (ms(200), ms(100)), "half is for repairs");
        assert_eq!(wait(Some(ms(400)), 180), (ms(120), ms(100)));
        assert_eq!(wait(Some(ms(400)), 900), (ms(50), ms(100)));
        assert_eq!(wait(None, 900), (WAIT, WAIT / 2));
        let stats = FlowStats {
            srtt: Some(restp_base::time::Duration::from_millis(40)),
            ..FlowStats::default()
        };
        assert_eq!(longest_round_trip(&stats), ms(40));
        assert_eq!(longest_round_trip(&FlowStats::default()), ms(0));
    }
}

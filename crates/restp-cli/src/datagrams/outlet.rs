//! What waits to be sent over a connection. A datagram that cannot leave while it is of use is dropped here: behind a bottleneck
//! only what is in time is worth its place.

use super::message::Message;
use super::seldom::Seldom;
use super::{check_fitness, deadline_of};
use crate::output::note;
use crate::pipe::Answer;
use bytes::Bytes;
use restp::{Connection, FlowStats, SendError};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a datagram without a deadline waits: what the queue of a router holds (RFC 8290 §4.1 reckons with 100 ms).
const WAIT: Duration = Duration::from_millis(100);

/// Most bytes that wait: 100 ms at 80 Mbit/s.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// How often idle flows are looked for.
pub const SWEEP: Duration = Duration::from_secs(10);

/// What a message that waits takes beside its bytes: many small ones must not take many times as much as large ones.
const MESSAGE_BYTES: usize = 64;

/// Until one looks again whether the connection has sent what it holds.
const LOOK: Duration = Duration::from_millis(2);

/// What a message takes while it waits.
fn cost(message: &Bytes) -> usize {
    message.len() + MESSAGE_BYTES
}

/// Bytes that have left, each counted once.
fn sent_once(stats: &FlowStats) -> u64 {
    stats
        .sent_payload_bytes
        .saturating_sub(stats.repeated_payload_bytes)
}

/// What waits for one connection.
pub struct Outlet {
    waiting: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    /// What the connection has taken.
    taken: Taken,
    /// How long what waits may wait here.
    wait: Duration,
    /// Most bytes of a message.
    limit: usize,
    /// Of the next datagram that takes several messages.
    number: u8,
    dropped: u64,
    told: Seldom,
}

impl Outlet {
    /// For `connection`, which is established.
    ///
    /// # Errors
    /// When its composition carries no datagrams.
    pub fn of(connection: &Connection) -> Result<Self, String> {
        let composition = connection.composition().ok_or("the connection is over")?;
        check_fitness(&composition)?;
        let deadline = deadline_of(&composition).map(|deadline| Duration::from_nanos(deadline.as_nanos()));
        Ok(Outlet {
            waiting: VecDeque::new(),
            bytes: 0,
            taken: Taken::after(sent_once(&connection.stats())),
            // The other half is for the way and for repairs.
            wait: deadline.map_or(WAIT, |deadline| deadline / 2),
            limit: composition.payload_bytes(),
            number: 0,
            dropped: 0,
            told: Seldom::default(),
        })
    }

    /// Takes a datagram of `flow`. When there is no room it is dropped, as a router would.
    pub fn push(&mut self, flow: u16, datagram: &[u8]) {
        let messages = Message::of_datagram(flow, datagram, self.number, self.limit);
        if messages.len() > 1 {
            // Others have none: what is left of one would be mixed with the next of the same number soon.
            self.number = self.number.wrapping_add(1);
        }
        let bytes: usize = messages.iter().map(cost).sum();
        if messages.is_empty() || self.bytes + bytes > MAX_WAITING_BYTES {
            self.drop_one();
            return;
        }
        let until = Instant::now() + self.wait;
        self.bytes += bytes;
        self.waiting
            .extend(messages.into_iter().map(|message| (until, message)));
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
        let message = message.encode();
        let bytes = cost(&message);
        if self.bytes + bytes <= MAX_WAITING_BYTES {
            self.bytes += bytes;
            self.waiting.push_back((Instant::now() + self.wait, message));
        }
    }

    /// One message less. Whoever sends more than the path carries is told so, now and then.
    fn drop_one(&mut self) {
        self.dropped += 1;
        if self.told.is_due(Instant::now()) {
            note(format!(
                "{} datagrams were dropped so far: more come than this path carries in time; send less, or use more paths",
                self.dropped
            ));
        }
    }

    /// Sends what waits, for ever. Can be dropped and called again at any time.
    pub async fn run(&mut self, connection: &Connection) {
        loop {
            let Some((until, message)) = self.waiting.front().cloned() else {
                return std::future::pending().await;
            };
            if until <= Instant::now() {
                self.pop();
                self.drop_one();
            } else if self.holds_enough(connection) {
                sleep(LOOK).await;
            } else {
                let bytes = message.len() as u64;
                match timeout_at(until, connection.send(message)).await {
                    // It is too late for it: dropped in the next turn.
                    Err(_) => {}
                    Ok(Ok(())) => {
                        self.taken.add(bytes, Instant::now());
                        self.pop();
                    }
                    Ok(Err(SendError::Rejected(_))) => self.pop(),
                    Ok(Err(_)) => return std::future::pending().await,
                }
            }
        }
    }

    fn pop(&mut self) {
        if let Some((_, message)) = self.waiting.pop_front() {
            self.bytes -= cost(&message);
        }
    }

    /// Does the connection hold something that it has not sent for a quarter of the time? There nothing is dropped for its age. A
    /// few segments always have room.
    fn holds_enough(&mut self, connection: &Connection) -> bool {
        let (unsent, since) = self.taken.unsent(sent_once(&connection.stats()));
        let is_old = since.is_some_and(|since| since.elapsed() > self.wait / 2);
        is_old && unsent > 8 * self.limit as u64
    }
}

/// What a connection has taken, and since when it has what it has not sent. How fast paths carry it, and which of them work, shows in that.
#[derive(Debug)]
struct Taken {
    bytes: u64,
    /// How many bytes those were up to each message, and when that was taken.
    unsent: VecDeque<(u64, Instant)>,
}

impl Taken {
    /// So many bytes were, and have been sent.
    fn after(bytes: u64) -> Self {
        Taken {
            bytes,
            unsent: VecDeque::new(),
        }
    }

    /// A message of `bytes` is taken.
    fn add(&mut self, bytes: u64, now: Instant) {
        self.bytes += bytes;
        self.unsent.push_back((self.bytes, now));
    }

    /// Bytes that are not sent, where `sent` are, and when the first of them was taken.
    fn unsent(&mut self, sent: u64) -> (u64, Option<Instant>) {
        while self.unsent.pop_front_if(|(up_to, _)| *up_to <= sent).is_some() {}
        let since = self.unsent.front().map(|(_, since)| *since);
        (self.bytes.saturating_sub(sent), since)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Assembly;
    use super::*;

    fn outlet(limit: usize) -> Outlet {
        Outlet {
            waiting: VecDeque::new(),
            bytes: 0,
            taken: Taken::after(0),
            wait: WAIT,
            limit,
            number: 0,
            dropped: 0,
            told: Seldom::default(),
        }
    }

    #[test]
    fn what_is_left_of_a_datagram_is_not_mixed_with_one_after_many_small_ones() {
        let mut outlet = outlet(50);
        outlet.push(1, &[1; 130]);
        (0..255).for_each(|_| outlet.push(1, &[2]));
        outlet.push(1, &[3; 130]);
        let messages: Vec<_> = outlet.waiting.iter().map(|(_, message)| message).collect();
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
    fn what_is_not_sent_has_waited_since_the_first_of_it_was_taken() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut taken = Taken::after(500);
        assert_eq!(taken.unsent(500), (0, None));
        (0..3).for_each(|number| taken.add(100, at(number)));
        assert_eq!(taken.unsent(500), (300, Some(at(0))));
        assert_eq!(taken.unsent(650), (150, Some(at(1))));
        assert_eq!(taken.unsent(800), (0, None));
        assert!(taken.unsent.is_empty());
    }

    #[test]
    fn small_datagrams_that_wait_take_no_more_memory_than_large_ones() {
        let mut outlet = outlet(1338);
        (0..100_000).for_each(|_| outlet.push(1, &[]));
        assert!(outlet.waiting.len() <= MAX_WAITING_BYTES / MESSAGE_BYTES);
        assert!(outlet.dropped > 0);
        while !outlet.waiting.is_empty() {
            outlet.pop();
        }
        assert_eq!(outlet.bytes, 0);
    }
}

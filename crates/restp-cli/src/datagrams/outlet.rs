//! What waits to be sent over a connection. A datagram that cannot leave while it is of use is dropped here: behind a bottleneck
//! only what is in time is worth its place.

use super::message::Message;
use super::seldom::Seldom;
use super::{check_fitness, deadline_of};
use crate::backlog::{Backlog, LOOK};
use crate::output::note;
use crate::pipe::Answer;
use bytes::Bytes;
use restp::{Connection, SendError};
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

/// What a message takes while it waits.
fn cost(message: &Bytes) -> usize {
    message.len() + MESSAGE_BYTES
}

/// What waits for one connection.
pub struct Outlet {
    waiting: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    backlog: Backlog,
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
            backlog: Backlog::of(&connection.stats()),
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
                let bytes = message.len();
                match timeout_at(until, connection.send(message)).await {
                    // It is too late for it: dropped in the next turn.
                    Err(_) => {}
                    Ok(Ok(())) => {
                        self.backlog.take(bytes, Instant::now());
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

    /// Does the connection hold more than leaves within a quarter of the time? There nothing is dropped for its age.
    fn holds_enough(&mut self, connection: &Connection) -> bool {
        let a_quarter = self.wait / 2;
        self.backlog
            .is_enough(|| connection.stats(), Instant::now(), a_quarter, self.limit)
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
            backlog: Backlog::default(),
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

//! What waits to leave through a tunnel. The links are slower than what comes, so the queue stands here: one for each flow, each kept
//! short (FQ-CoDel, RFC 8290), so that a call does not wait behind a download.

use crate::backlog::{Backlog, LOOK};
use bytes::Bytes;
use restp::packet::{ecn, flow, mark_ce};
use restp::{Connection, SendError};
use restp_base::time::Time;
use restp_sim::{Codel, FairQueue, FqCodel, Parcel};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What the connection may hold that has not left, where no queue is fair: enough for the paths until one looks again.
const HELD: Duration = Duration::from_millis(10);

/// The longest round trip that is common (RFC 8289 §4.3 takes 100 ms of the Internet for it). Here the slowest of the links decides it,
/// a mobile one often, and what one of them lost holds up the rest until it has come again.
const INTERVAL: restp_base::time::Duration = restp_base::time::Duration::from_millis(200);
/// For how long a packet may wait while that lasts: a tenth, the most that RFC 8289 §4.3 finds useful. What was held up arrives
/// in one burst and lets another begin, which is no standing queue.
const TARGET: restp_base::time::Duration = restp_base::time::Duration::from_millis(20);

/// Packets that wait for one connection.
pub struct Outlet {
    queue: FairQueue<Bytes>,
    /// The next to be sent.
    next: Option<Bytes>,
    backlog: Backlog,
    /// Most bytes of a packet.
    limit: usize,
    began: Instant,
}

impl Outlet {
    /// For `connection`, which carries packets of `limit` bytes at most.
    pub fn of(connection: &Connection, limit: usize) -> Self {
        let mut seed = [0; 8];
        // Who could foresee it could choose whose queue he shares. Without one nothing else is lost.
        let _ = getrandom::fill(&mut seed);
        Outlet {
            queue: FairQueue::new(&parameters(), u64::from_le_bytes(seed)).expect("sound parameters"),
            next: None,
            backlog: Backlog::of(&connection.stats()),
            limit,
            began: Instant::now(),
        }
    }

    fn now(&self) -> Time {
        let nanos = self.began.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Takes a packet. Where there is no room one of the flow that has most is dropped.
    pub fn push(&mut self, packet: &[u8]) {
        let parcel = Parcel {
            bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            ecn: ecn(packet),
            may_fragment: false,
            flow: flow(packet),
            tag: 0,
        };
        self.queue
            .push(self.now(), parcel, Bytes::copy_from_slice(packet));
    }

    /// Sends what waits until the connection is over. Can be dropped and called again at any time.
    pub async fn run(&mut self, connection: &Connection) {
        loop {
            if self.next.is_none() && self.queue.is_empty() {
                return std::future::pending().await;
            }
            if self
                .backlog
                .is_enough(|| connection.stats(), Instant::now(), HELD, self.limit)
            {
                sleep(LOOK).await;
                continue;
            }
            let now = self.now();
            let Some(packet) = self.next.take().or_else(|| self.pop(now)) else {
                continue;
            };
            self.next = Some(packet.clone());
            let bytes = packet.len();
            match connection.send(packet).await {
                Ok(()) => self.backlog.take(bytes, Instant::now()),
                Err(SendError::Rejected(_)) => {}
                Err(_) => return,
            }
            self.next = None;
        }
    }

    fn pop(&mut self, now: Time) -> Option<Bytes> {
        let (packet, is_marked) = self.queue.pop(now)?;
        Some(if is_marked { mark_ce(&packet) } else { packet })
    }
}

fn parameters() -> FqCodel {
    let codel = Codel {
        target: TARGET,
        interval: INTERVAL,
        ..FqCodel::default().codel
    };
    FqCodel {
        codel,
        ..FqCodel::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_sound() {
        assert!(FairQueue::<Bytes>::new(&parameters(), 1).is_ok());
    }
}

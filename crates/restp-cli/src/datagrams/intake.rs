//! What comes over a connection, no faster than the sockets of programs take it. Where order is kept, what waited behind a hole comes at
//! once: a second of a stream over a satellite, which no queue of a socket holds.

use super::composition::deadline_of;
use bytes::Bytes;
use restp::Connection;
use std::future::ready;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Of what has waited so much is handed out at once, and then in each such time: half of what Linux queues for a socket by default (`net.core.rmem_default`,
/// 208 KiB) before a program has had its turn. A stream that does not wait is not held up.
const BURST_BYTES: usize = 96 << 10;
const TURN: Duration = Duration::from_millis(1);
/// What the kernel keeps beside the bytes of a datagram.
const OVERHEAD_BYTES: usize = 512;

/// The way in.
#[derive(Debug)]
pub struct Intake {
    /// Only what has a deadline is kept in order.
    is_ordered: bool,
    since: Instant,
    bytes: usize,
}

impl Intake {
    /// From `connection`.
    pub fn of(connection: &Connection) -> Self {
        let deadline = connection
            .composition()
            .and_then(|composition| deadline_of(&composition));
        Intake::new(deadline.is_some())
    }

    fn new(is_ordered: bool) -> Self {
        Intake {
            is_ordered,
            since: Instant::now(),
            bytes: 0,
        }
    }

    /// The next message, in its turn; `None` when the connection is over. Nothing is lost where this is given up.
    pub async fn next(&mut self, connection: &Connection) -> Option<Bytes> {
        self.next_of(|| connection.recv()).await
    }

    async fn next_of<F: Future<Output = Option<Bytes>>>(&mut self, recv: impl Fn() -> F) -> Option<Bytes> {
        self.turn().await;
        let message = tokio::select! {
            biased;
            message = recv() => message,
            () = ready(()) => {
                self.bytes = 0; // nothing has waited
                recv().await
            }
        }?;
        self.on_taken(message.len());
        Some(message)
    }

    async fn turn(&self) {
        if self.is_ordered && self.bytes >= BURST_BYTES {
            sleep_until(self.since + TURN).await;
        }
    }

    fn on_taken(&mut self, bytes: usize) {
        let now = Instant::now();
        if now >= self.since + TURN {
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += bytes + OVERHEAD_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long it takes to hand out so many datagrams of `bytes` that are all there.
    async fn takes(is_ordered: bool, datagrams: usize, bytes: usize) -> Duration {
        let mut intake = Intake::new(is_ordered);
        let begin = Instant::now();
        for _ in 0..datagrams {
            let message = Bytes::from(vec![0; bytes]);
            assert!(intake.next_of(|| ready(Some(message.clone()))).await.is_some());
        }
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_not_waited_is_handed_out_when_it_comes() {
        let mut intake = Intake::new(true);
        let begin = Instant::now();
        for _ in 0..5_000 {
            // It comes when it is waited for.
            let recv = || async {
                tokio::task::yield_now().await;
                Some(Bytes::from_static(&[0; 1400]))
            };
            assert!(intake.next_of(recv).await.is_some());
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
        assert!(intake.next_of(|| ready(None)).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waited_leaves_in_turns_that_a_socket_holds() {
        assert_eq!(takes(true, 50, 1400).await, Duration::ZERO);
        // 52 of them in each turn; the virtual clock ticks in milliseconds.
        assert_eq!(takes(true, 520, 1400).await, 9 * TURN);
        assert_eq!(
            takes(true, 1370, 200).await,
            9 * TURN,
            "small ones weigh more than their bytes"
        );
        assert_eq!(
            takes(false, 5_000, 1400).await,
            Duration::ZERO,
            "nothing waits without order"
        );
    }
}

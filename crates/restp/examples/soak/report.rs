//! What a process says of itself.

use crate::kind::Kind;
use restp::clock::Clock;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters; they only grow, but for `live`.
#[derive(Debug, Default)]
pub struct Report {
    /// Connections that are there now.
    pub live: AtomicU64,
    /// Connections that began.
    pub opened: AtomicU64,
    /// Connections that ended in good order, everything delivered.
    pub finished: AtomicU64,
    /// Connections that ended otherwise.
    pub broken: AtomicU64,
    /// Bytes of streams received and found right.
    pub stream_bytes: AtomicU64,
    /// Messages sent.
    pub sent: AtomicU64,
    /// Messages received and found right.
    pub received: AtomicU64,
    /// Bytes and messages found wrong.
    pub wrong: AtomicU64,
}

/// One more.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// One less.
pub fn subtract(counter: &AtomicU64, count: u64) {
    counter.fetch_sub(count, Ordering::Relaxed);
}

impl Report {
    /// A connection to `peer` ended for another reason than its end.
    pub fn broke(&self, peer: u8, kind: Kind, why: impl Display) {
        add(&self.broken, 1);
        println!("{{\"event\": \"broken\", \"peer\": {peer}, \"kind\": \"{kind:?}\", \"why\": \"{why}\"}}");
    }

    /// Something arrived that must not.
    pub fn found(&self, kind: Kind, what: impl Display) {
        add(&self.wrong, 1);
        println!("{{\"event\": \"wrong\", \"kind\": \"{kind:?}\", \"what\": \"{what}\"}}");
    }
}

/// A line every five seconds.
pub async fn print(report: Arc<Report>) {
    let clock = Clock::start();
    loop {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "{{\"event\": \"counters\", \"at\": {:.0}, \"live\": {}, \"opened\": {}, \"finished\": {}, \"broken\": {}, \
             \"stream_bytes\": {}, \"sent\": {}, \"received\": {}, \"wrong\": {}}}",
            clock.now().as_secs_f64(),
            of(&report.live),
            of(&report.opened),
            of(&report.finished),
            of(&report.broken),
            of(&report.stream_bytes),
            of(&report.sent),
            of(&report.received),
            of(&report.wrong),
        );
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

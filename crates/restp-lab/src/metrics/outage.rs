//! How a sender lives through outages of its path: which of its timers run out, and what it sends when an answer comes
//! again.

use crate::traffic::Account;
use restp_base::flow::FlowStats;
use restp_base::time::{Duration, Time};
use serde::Serialize;
use std::ops::Range;

/// One retransmission timer that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeoutResult {
    /// When.
    pub at_s: f64,
    /// How long it had been set for.
    pub rto_s: f64,
}

/// One outage of a flow's path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutageResult {
    /// When it began.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// From its end until the application read the first byte.
    pub resume_s: Option<f64>,
    /// The longest time without a byte for the application that touches it.
    pub pause_s: Option<f64>,
    /// Timers that ran out from its start until then.
    pub timeouts: u64,
    /// How long the first of these timers had been set for.
    pub first_rto_s: Option<f64>,
    /// How long the last of them had been set for.
    pub last_rto_s: Option<f64>,
    /// The last as a multiple of the first.
    pub rto_growth: Option<f64>,
    /// Bytes sent in the first round trip after the first answer, as a share of the largest window in that time: above
    /// 1 the sender sent more than the window it had.
    pub burst_share: Option<f64>,
}

/// Watches a sender by its counters, which is all that an observer may see.
#[derive(Debug)]
pub struct Watch {
    outages: Vec<Range<Time>>,
    /// Propagation both ways.
    rtt: Duration,
    timeouts: Vec<(Time, Duration)>,
    /// Per outage that an answer followed.
    restarts: Vec<Restart>,
    last: FlowStats,
}

#[derive(Debug)]
struct Restart {
    at: Time,
    /// Application bytes sent before it.
    before: u64,
    sent: u64,
    window: u64,
}

impl Watch {
    /// For a flow whose path has these outages, in the order of time, and this propagation both ways.
    pub fn new(outages: Vec<Range<Time>>, rtt: Duration) -> Self {
        Watch {
            outages,
            rtt,
            timeouts: Vec::new(),
            restarts: Vec::new(),
            last: FlowStats::default(),
        }
    }

    /// Takes the sender's counters after a step of it.
    pub fn look(&mut self, now: Time, stats: FlowStats) {
        if stats.timeouts > self.last.timeouts {
            self.timeouts.extend(self.last.rto.map(|rto| (now, rto)));
        }
        let answered = stats.received_packets > self.last.received_packets;
        while answered
            && self
                .outages
                .get(self.restarts.len())
                .is_some_and(|outage| outage.end <= now)
        {
            self.restarts.push(Restart {
                at: now,
                before: self.last.sent_payload_bytes,
                sent: 0,
                window: 0,
            });
        }
        let young = |restart: &&mut Restart| now.since(restart.at) <= self.rtt;
        for restart in self.restarts.iter_mut().rev().take_while(young) {
            restart.sent = stats.sent_payload_bytes - restart.before;
            restart.window = restart.window.max(stats.congestion_window_bytes);
        }
        self.last = stats;
    }

    /// Every timer that ran out.
    pub fn timeouts(&self) -> Vec<TimeoutResult> {
        let one = |&(at, rto): &(Time, Duration)| TimeoutResult {
            at_s: at.as_secs_f64(),
            rto_s: rto.as_secs_f64(),
        };
        self.timeouts.iter().map(one).collect()
    }

    /// The account of each outage that began before `end`, from what the application read.
    pub fn outages(&self, end: Time, account: &Account) -> Vec<OutageResult> {
        let one = |(i, outage): (usize, &Range<Time>)| {
            let resumed = account.resumed(i);
            let until = resumed.unwrap_or(end);
            let within: Vec<Duration> = self
                .timeouts
                .iter()
                .filter(|(at, _)| (outage.start..until).contains(at))
                .map(|(_, rto)| *rto)
                .collect();
            let growth =
                |first: &Duration| within.last().map(|last| last.as_secs_f64() / first.as_secs_f64());
            let restart = self.restarts.get(i).filter(|restart| restart.window > 0);
            OutageResult {
                start_s: outage.start.as_secs_f64(),
                end_s: outage.end.as_secs_f64(),
                resume_s: resumed.map(|at| at.since(outage.end).as_secs_f64()),
                pause_s: account.pause(i, end).map(|pause| pause.as_secs_f64()),
                timeouts: within.len() as u64,
                first_rto_s: within.first().map(|rto| rto.as_secs_f64()),
                last_rto_s: within.last().map(|rto| rto.as_secs_f64()),
                rto_growth: within.first().and_then(growth),
                burst_share: restart.map(|restart| restart.sent as f64 / restart.window as f64),
            }
        };
        let begun = self.outages.iter().take_while(|outage| outage.start < end);
        begun.enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Moments;

    fn at(s: u64) -> Time {
        Time::ZERO + Duration::from_secs(s)
    }

    /// A sender that doubles its timer: it runs out 1, 2 and 4 s after the beginning, and at 95 s, long after.
    #[test]
    fn an_outage_has_its_timers_its_silence_and_its_restart() {
        let spans = vec![at(20)..at(26), at(90)..at(91)];
        let mut account = Account::new(Moments {
            bin: None,
            outages: spans.clone(),
            ..Moments::default()
        });
        account.enter(at(19), 1);
        account.enter(at(28) - Duration::from_millis(260), 1);
        let mut watch = Watch::new(spans, Duration::from_millis(500));
        let mut stats = FlowStats {
            rto: Some(Duration::from_secs(1)),
            received_packets: 10,
            sent_payload_bytes: 1000,
            congestion_window_bytes: 400,
            ..FlowStats::default()
        };
        watch.look(at(19), stats.clone());
        for (s, next) in [(21, 2), (23, 4), (27, 8)] {
            stats.timeouts += 1;
            stats.rto = Some(Duration::from_secs(next));
            stats.sent_payload_bytes += 100;
            watch.look(at(s), stats.clone());
        }
        stats.received_packets += 1;
        stats.sent_payload_bytes += 200;
        watch.look(at(28), stats.clone());
        stats.sent_payload_bytes += 400;
        stats.congestion_window_bytes = 500;
        watch.look(at(28) + Duration::from_millis(400), stats.clone());
        stats.sent_payload_bytes += 4000;
        watch.look(at(29), stats.clone());
        stats.timeouts += 1;
        watch.look(at(95), stats.clone());

        let outages = watch.outages(at(100), &account);
        assert_eq!(outages[0].timeouts, 3);
        assert_eq!(
            (outages[0].first_rto_s, outages[0].last_rto_s),
            (Some(1.0), Some(4.0))
        );
        assert_eq!(
            (outages[0].resume_s, outages[0].pause_s),
            (Some(1.74), Some(8.74))
        );
        assert_eq!(outages[0].rto_growth, Some(4.0));
        assert_eq!(outages[0].burst_share, Some(600.0 / 500.0));
        assert_eq!(
            (outages[1].timeouts, outages[1].resume_s, outages[1].burst_share),
            (1, None, None)
        );
        assert_eq!(
            watch.timeouts()[3],
            TimeoutResult {
                at_s: 95.0,
                rto_s: 8.0
            }
        );
        assert_eq!(
            watch.outages(at(50), &account).len(),
            1,
            "the second has not begun"
        );
    }
}

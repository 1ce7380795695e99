//! The sender through its doors, in virtual time. Segments have 1000 bytes and numbers from 1 on. The set-up has measured a
//! round trip of 100 ms, so the retransmission timer begins at 300 ms (RFC 6298 (2.2)).

mod answers;
mod assignment;
mod causes;
mod credit;
mod lane_losses;
mod lane_stories;
mod lane_timers;
mod lanes;
mod messages;
mod outage;
mod probes;
mod scheduled;
mod set_up;
mod shared;
mod tail;
mod timer;
mod window;

use super::*;
use crate::ack::{AckReport, Detail};
use crate::congestion::CongestionSnapshot;
use crate::recovery::{FalseReport, FastRecovery, PipeParameters, RecoveryChoice, Reordering};
use crate::view::PathView;
use restp_base::machine::Wakeup;
use restp_base::units::Rate;
use std::ops::Range;
use std::sync::{Arc, Mutex};

const SEGMENT: usize = 1000;
/// Where the peer's credit begins, in either unit.
const FIRST_CREDIT: u64 = 1;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What the controller heard, and what it could see of the path then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    event: CongestionEvent,
    in_flight_bytes: u64,
    application_limited: bool,
    in_recovery: bool,
}

/// A window and a rate that only the test changes, and what was heard.
#[derive(Debug, Default)]
struct Script {
    window: u64,
    rate: Option<Rate>,
    delivers: Option<Rate>,
    /// It starts until it has heard so many more events.
    starts_for: u32,
    heard: Vec<Heard>,
}

/// The controller that a test scripts.
#[derive(Debug)]
struct Scripted(Arc<Mutex<Script>>);

impl Congestion for Scripted {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let mut script = self.0.lock().unwrap();
        script.starts_for = script.starts_for.saturating_sub(1);
        script.heard.push(Heard {
            event: *event,
            in_flight_bytes: view.in_flight_bytes,
            application_limited: view.application_limited,
            in_recovery: view.in_recovery,
        });
    }
    fn is_starting(&self) -> bool {
        self.0.lock().unwrap().starts_for > 0
    }
    fn window_bytes(&self) -> u64 {
        self.0.lock().unwrap().window
    }
    fn pacing(&self) -> Option<Rate> {
        self.0.lock().unwrap().rate
    }
    fn delivers(&self) -> Option<Rate> {
        self.0.lock().unwrap().delivers
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window_bytes(),
            threshold_bytes: None,
            state: "scripted",
        }
    }
}

/// What a test decides about its sender.
struct Setup {
    parameters: SenderParameters,
    window: u64,
    recovery: RecoveryChoice,
    reordering: Reordering,
    rto: RtoParameters,
    credit: u64,
}

impl Setup {
    /// As ResTP: credit counts segments, and there is plenty of it.
    fn segments() -> Self {
        let parameters = SenderParameters {
            framing: Framing::Coalesce,
            segment_bytes: SEGMENT as u32,
            reserved_bytes: 0,
            send_buffer: SendBuffer::of_waiting(100 * SEGMENT),
            numbered: true,
            retransmits: true,
            has_feedback: true,
            pointer_only: true,
            paces: false,
            reduces_in_proportion: false,
            probes_tail: false,
            thins_acks: false,
            repairs_cost: false,
            limits_outstanding: false,
            loss_handling: LossHandling::Congestion,
            credit: CreditUnit::Segments,
            window_probes: WindowProbes::Steady,
            filling: Filling::Whole,
            retransmit_target: RetransmitTarget::Asap,
            spares_fresh: false,
            differentiation: Differentiation::Split,
        };
        Setup {
            parameters,
            window: 100 * SEGMENT as u64,
            recovery: RecoveryChoice::DuplicateAck,
            reordering: Reordering::Threshold,
            rto: RtoParameters::default(),
            credit: 1000,
        }
    }

    /// As TCP: credit counts bytes, and window probes back off.
    fn bytes() -> Self {
        let mut setup = Setup::segments();
        setup.parameters.credit = CreditUnit::Bytes;
        setup.parameters.window_probes = WindowProbes::BackingOff;
        setup.credit = 1_000_000;
        setup
    }

    fn with_window(self, window: u64) -> Self {
        Setup { window, ..self }
    }

    fn with_credit(self, credit: u64) -> Self {
        Setup { credit, ..self }
    }

    fn judging(self, reordering: Reordering) -> Self {
        Setup { reordering, ..self }
    }

    fn with(mut self, change: impl FnOnce(&mut SenderParameters)) -> Self {
        change(&mut self.parameters);
        self
    }

    /// Before the set-up is complete.
    fn opening(self) -> Story {
        let script = Arc::new(Mutex::new(Script {
            window: self.window,
            ..Script::default()
        }));
        let controller = Controller::Custom(Box::new(Scripted(Arc::clone(&script))));
        let pipe = PipeParameters {
            reordering: self.reordering,
            ..PipeParameters::new(Detail::Sack { max_blocks: 4 })
        };
        let recovery = Recovery::new(self.recovery, FastRecovery::NewReno, true, pipe);
        let mut sender = Sender::new(
            at(0),
            1,
            FIRST_CREDIT,
            self.parameters,
            recovery,
            controller,
            self.rto,
        );
        sender.grant(FIRST_CREDIT, self.credit);
        Story {
            sender,
            script,
            now: at(0),
            written: 0,
        }
    }

    /// The set-up is complete.
    fn established(self) -> Story {
        let mut story = self.opening();
        story.sender.establish(at(0), Some(ms(100)), false);
        story
    }
}

/// A sender, its controller, and the time.
struct Story {
    sender: Sender,
    script: Arc<Mutex<Script>>,
    now: Time,
    /// Segments written: the next is filled with the number after this.
    written: u8,
}

impl Story {
    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = at(ms);
        self
    }

    fn write(&mut self, segments: usize) -> &mut Self {
        for _ in 0..segments {
            self.written += 1;
            assert!(
                self.sender
                    .write(self.now, Bytes::from(vec![self.written; SEGMENT]))
            );
        }
        self
    }

    /// The segment that leaves now.
    fn segment(&mut self, fin: bool) -> Option<Segment> {
        match self.sender.next(self.now, fin)? {
            Transmission::Segment(segment) => Some(segment),
            other => panic!("{other:?}"),
        }
    }

    /// Numbers of all that leaves now.
    fn send(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.segment(false))
            .map(|segment| segment.number.expect("segments have numbers"))
            .collect()
    }

    fn on_report(
        &mut self,
        report: &AckReport,
        change: impl FnOnce(&mut PeerReport<'_>),
    ) -> Result<(), FalseReport> {
        let mut peer = PeerReport {
            report,
            grant: None,
            is_bare_duplicate: true,
            echoed_rtt: None,
            echoes_mark: false,
            repaired: 0,
        };
        change(&mut peer);
        self.sender.on_feedback(self.now, &peer)
    }

    /// The peer acknowledges everything below `pointer`. When that is not new, it is a duplicate.
    fn ack(&mut self, pointer: u64) -> &mut Self {
        self.on_report(&AckReport::pointer(pointer), |_| {})
            .expect("possible");
        self
    }

    /// The same, and it takes `units` of credit from `at` on.
    fn grant(&mut self, pointer: u64, at: u64, units: u64) -> &mut Self {
        let grant = Some(Grant { at, units });
        self.on_report(&AckReport::pointer(pointer), |peer| {
            (peer.grant, peer.is_bare_duplicate) = (grant, false);
        })
        .expect("possible");
        self
    }

    /// The same, and it has `block` beyond the pointer.
    fn sack(&mut self, pointer: u64, block: Range<u64>) -> &mut Self {
        let mut report = AckReport::pointer(pointer);
        report.received.push(block);
        self.on_report(&report, |_| {}).expect("possible");
        self
    }

    /// Waits for the deadline of the sender.
    fn expire(&mut self) -> TimeoutOutcome {
        self.now = self.sender.deadline().expect("a timer runs").0;
        self.sender.on_deadline(self.now)
    }

    fn retransmission_at(&self) -> Option<Time> {
        let deadline = self.sender.deadline();
        deadline.and_then(|(at, why)| (why == Wakeup::Retransmission).then_some(at))
    }

    fn set_window(&self, bytes: u64) {
        self.script.lock().unwrap().window = bytes;
    }

    fn set_rate(&self, rate: Rate) {
        self.script.lock().unwrap().rate = Some(rate);
    }

    /// What the controller heard since it was asked last, without what left.
    fn heard(&self) -> Vec<Heard> {
        let mut heard = std::mem::take(&mut self.script.lock().unwrap().heard);
        heard.retain(|heard| !matches!(heard.event, CongestionEvent::Sent { .. }));
        heard
    }
}

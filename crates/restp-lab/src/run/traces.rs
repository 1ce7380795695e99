//! What one run did over time, as tables: windows and round trips of the senders, what each path carried, queues,
//! sequence numbers, frames on the air.

mod air;
mod queue;
mod sender;
mod sequence;

use super::columns::Table;
use super::observer::{End, Observer};
use super::replication::observed;
use super::{RunError, RunResult};
use crate::host::{Host, Seat};
use crate::scenario::{Plan, Point};
use air::Frames;
use queue::Queues;
use restp_base::flow::FlowId;
use restp_base::machine::Datagram;
use restp_base::observe::Loss;
use restp_base::time::{Duration, Time};
use restp_sim::World;
use sender::Senders;
use sequence::Sequences;
use std::ops::Range;

/// How closely to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesWanted {
    /// States are noted at most once in this time, and only when they changed; zero: every change.
    pub every: Duration,
    /// More rows than this, in all tables together, end the run.
    pub rows: usize,
    /// Is every datagram noted?
    pub sequence: bool,
    /// Frames that are on the air within this time are noted.
    pub air: Range<Time>,
}

/// The tables of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// Of each sender: `at_s`, `flow`, `congestion_window_bytes`, `in_flight_segments`, `srtt_s`, `rto_s`,
    /// `sent_payload_bytes` (retransmissions included).
    pub window: Table,
    /// Of each path of each sender: `at_s`, `flow`, `path` (from 0, in the order written), `sent_bytes`,
    /// `received_bytes`, `lost_packets`, `srtt_s`.
    pub path: Table,
    /// Of each direction of each link: `at_s`, `link`, `packets`, `bytes` that wait.
    pub queue: Table,
    /// Of each datagram: `at_s`, `flow`, `path`, `host` (`opener`, `server`), `step` (`sent`, `received`), `sequence`,
    /// `acknowledgement`, `payload_bytes`. Numbers are counted from the first of their direction and path, in the
    /// protocol's units (segments with ResTP, bytes with TCP); -1 where there is none.
    pub sequence: Table,
    /// Of each frame on the air: `at_s`, `until_s` (over at the station it is for), `medium`, `station`, `to`, `kind` (`rts`, `cts`,
    /// `data`, `ack`), `outcome` (`received`, or why not: `collision`, `error`, `outage`; `contention`: received and not answered).
    pub air: Table,
}

/// Runs `point` with `seed` and notes what happens. The result is the same as without.
///
/// # Errors
/// When the run cannot go on, or there is more to note than `wanted` allows.
pub fn traces(point: &Point, seed: u64, wanted: TracesWanted) -> Result<(RunResult, Traces), RunError> {
    let mut notes = Notes {
        seed,
        plan: &point.plan,
        senders: Senders::new(&point.plan, wanted.every),
        queues: Queues::new(wanted.every),
        sequences: Sequences::new(&point.plan),
        frames: Frames::new(wanted.air.clone()),
        wanted,
    };
    let result = observed(point, seed, &mut notes)?;
    let (window, path) = notes.senders.tables(&point.plan);
    let traces = Traces {
        window,
        path,
        queue: notes.queues.table(),
        sequence: notes.sequences.table(&point.plan),
        air: notes.frames.table(&point.plan),
    };
    Ok((result, traces))
}

struct Notes<'a> {
    wanted: TracesWanted,
    seed: u64,
    plan: &'a Plan,
    senders: Senders,
    queues: Queues,
    sequences: Sequences,
    frames: Frames,
}

impl Observer for Notes<'_> {
    fn arrived(&mut self, now: Time, end: End, datagram: &Datagram) {
        if self.wanted.sequence {
            let transport = &self.plan.flows[end.flow].transport;
            // The path still is the sender's.
            let numbers = transport.numbers(datagram, datagram.path.reversed());
            self.sequences.note(now, end, false, datagram.path, numbers);
        }
    }

    fn sent(&mut self, now: Time, end: End, datagram: &Datagram) {
        if self.wanted.sequence {
            let transport = &self.plan.flows[end.flow].transport;
            let numbers = transport.numbers(datagram, datagram.path.reversed());
            self.sequences.note(now, end, true, datagram.path, numbers);
        }
    }

    fn lost(&mut self, _: Time, _: End, _: FlowId, _: &Loss) {}

    fn settled(&mut self, now: Time, seat: &Seat, host: &Host, world: &mut World) -> Result<(), RunError> {
        self.senders.note(now, seat, host.machine());
        self.queues.note(now, world);
        if !self.wanted.air.is_empty() {
            self.frames.note(world);
        }
        let tables = [
            self.senders.rows(),
            self.queues.rows(),
            self.sequences.rows(),
            self.frames.rows(),
        ];
        let rows: usize = tables.iter().sum();
        if rows > self.wanted.rows {
            return Err(RunError::TraceTooLong {
                seed: self.seed,
                most: self.wanted.rows,
                at: now,
                end: Time::ZERO + self.plan.duration,
            });
        }
        Ok(())
    }
}

/// The names of the flows, in their order.
fn flow_names(plan: &Plan) -> Vec<String> {
    plan.flows.iter().map(|flow| flow.name.clone()).collect()
}

/// Seconds, or NaN.
fn seconds(span: Option<Duration>) -> f64 {
    span.map_or(f64::NAN, |span| span.as_secs_f64())
}

//! Windows, round trips and paths of the senders, by their counters, which is all that an observer may see.

use super::{flow_names, seconds};
use crate::host::{Application, Seat};
use crate::run::columns::{Column, Table};
use crate::scenario::Plan;
use restp_base::flow::{FlowStats, PathStats};
use restp_base::machine::Machine;
use restp_base::time::{Duration, Time};

/// Notes of every sender.
pub(super) struct Senders {
    every: Duration,
    /// Of each flow: when to look again, and what was noted last.
    last: Vec<Last>,
    windows: Windows,
    paths: Paths,
}

#[derive(Clone, Default)]
struct Last {
    next: Time,
    window: Option<Window>,
    paths: Vec<Option<Carried>>,
}

/// What changes of a sender.
#[derive(Clone, Copy, PartialEq)]
struct Window {
    congestion_bytes: u64,
    in_flight: u64,
    srtt: Option<Duration>,
    rto: Option<Duration>,
    sent_payload: u64,
}

/// What changes of a path.
#[derive(Clone, Copy, PartialEq)]
struct Carried {
    sent: u64,
    received: u64,
    lost: u64,
    srtt: Option<Duration>,
}

#[derive(Default)]
struct Windows {
    at: Vec<f64>,
    flow: Vec<i32>,
    congestion: Vec<i64>,
    in_flight: Vec<i64>,
    srtt: Vec<f64>,
    rto: Vec<f64>,
    sent: Vec<i64>,
}

#[derive(Default)]
struct Paths {
    at: Vec<f64>,
    flow: Vec<i32>,
    path: Vec<i64>,
    sent: Vec<i64>,
    received: Vec<i64>,
    lost: Vec<i64>,
    srtt: Vec<f64>,
}

impl Senders {
    pub(super) fn new(plan: &Plan, every: Duration) -> Self {
        let last = |flow: &crate::scenario::FlowPlan| Last {
            paths: vec![None; flow.paths.len()],
            ..Last::default()
        };
        Senders {
            every,
            last: plan.flows.iter().map(last).collect(),
            windows: Windows::default(),
            paths: Paths::default(),
        }
    }

    pub(super) fn note(&mut self, now: Time, seat: &Seat, machine: &dyn Machine) {
        let Application::Sender(sender) = &seat.application else {
            return;
        };
        let flow = seat.end.flow;
        let last = &mut self.last[flow];
        if now < last.next {
            return;
        }
        let Some(stats) = seat.stats(machine) else {
            return;
        };
        last.next = now + self.every;
        let window = Window::of(&stats);
        if last.window != Some(window) {
            last.window = Some(window);
            self.windows.push(now, flow, window);
        }
        for (index, attempt) in sender.paths().iter().enumerate() {
            let own = |path: &&PathStats| path.path == attempt.path;
            let carried = match stats.paths.iter().rfind(own) {
                Some(path) => Carried::of(path),
                // A machine with one path says it of the whole.
                None if stats.paths.is_empty() && index == 0 => Carried::of_whole(&stats),
                None => continue,
            };
            if last.paths[index] != Some(carried) {
                last.paths[index] = Some(carried);
                self.paths.push(now, flow, index, carried);
            }
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.windows.at.len() + self.paths.at.len()
    }

    pub(super) fn tables(self, plan: &Plan) -> (Table, Table) {
        let Senders { windows, paths, .. } = self;
        let window = vec![
            ("at_s", Column::Float(windows.at)),
            ("flow", Column::Word(windows.flow, flow_names(plan))),
            ("congestion_window_bytes", Column::Integer(windows.congestion)),
            ("in_flight_segments", Column::Integer(windows.in_flight)),
            ("srtt_s", Column::Float(windows.srtt)),
            ("rto_s", Column::Float(windows.rto)),
            ("sent_payload_bytes", Column::Integer(windows.sent)),
        ];
        let path = vec![
            ("at_s", Column::Float(paths.at)),
            ("flow", Column::Word(paths.flow, flow_names(plan))),
            ("path", Column::Integer(paths.path)),
            ("sent_bytes", Column::Integer(paths.sent)),
            ("received_bytes", Column::Integer(paths.received)),
            ("lost_packets", Column::Integer(paths.lost)),
            ("srtt_s", Column::Float(paths.srtt)),
        ];
        (Table { columns: window }, Table { columns: path })
    }
}

impl Window {
    fn of(stats: &FlowStats) -> Self {
        Window {
            congestion_bytes: stats.congestion_window_bytes,
            in_flight: stats.in_flight_segments,
            srtt: stats.srtt,
            rto: stats.rto,
            sent_payload: stats.sent_payload_bytes,
        }
    }
}

impl Carried {
    fn of(path: &PathStats) -> Self {
        Carried {
            sent: path.sent_bytes,
            received: path.received_bytes,
            lost: path.lost_packets,
            srtt: path.srtt,
        }
    }

    fn of_whole(stats: &FlowStats) -> Self {
        Carried {
            sent: stats.sent_bytes,
            received: stats.received_bytes,
            lost: stats.lost_packets,
            srtt: stats.srtt,
        }
    }
}

impl Windows {
    fn push(&mut self, now: Time, flow: usize, window: Window) {
        self.at.push(now.as_secs_f64());
        self.flow.push(flow as i32);
        // No controller limits a flow by a window beyond all bounds.
        self.congestion
            .push(i64::try_from(window.congestion_bytes).unwrap_or(-1));
        self.in_flight.push(window.in_flight as i64);
        self.srtt.push(seconds(window.srtt));
        self.rto.push(seconds(window.rto));
        self.sent.push(window.sent_payload as i64);
    }
}

impl Paths {
    fn push(&mut self, now: Time, flow: usize, path: usize, carried: Carried) {
        self.at.push(now.as_secs_f64());
        self.flow.push(flow as i32);
        self.path.push(path as i64);
        self.sent.push(carried.sent as i64);
        self.received.push(carried.received as i64);
        self.lost.push(carried.lost as i64);
        self.srtt.push(seconds(carried.srtt));
    }
}

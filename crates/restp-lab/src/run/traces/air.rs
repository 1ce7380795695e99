//! Who transmits when, and what comes of it.

use crate::run::columns::{Column, Table};
use crate::scenario::Plan;
use restp_base::time::Time;
use restp_sim::medium::{FrameKind, FrameSeen};
use restp_sim::{DropReason, World};
use std::ops::Range;

/// Notes of every frame of every medium, in the order in which they ended.
pub(super) struct Frames {
    /// Only frames that were on the air within.
    window: Range<Time>,
    medium: Vec<i32>,
    seen: Vec<FrameSeen>,
}

/// What a frame is for, and what came of it, by place.
const KINDS: [&str; 4] = ["rts", "cts", "data", "ack"];
const OUTCOMES: [&str; 5] = ["received", "collision", "contention", "error", "outage"];

impl Frames {
    pub(super) fn new(window: Range<Time>) -> Self {
        Frames {
            window,
            medium: Vec::new(),
            seen: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, world: &mut World) {
        for (medium, frames) in world.take_frames() {
            let within = |frame: &FrameSeen| frame.until > self.window.start && frame.from < self.window.end;
            let frames = frames.into_iter().filter(within);
            let before = self.seen.len();
            self.seen.extend(frames);
            self.medium
                .resize(self.medium.len() + self.seen.len() - before, medium as i32);
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn table(self, plan: &Plan) -> Table {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let nodes = plan.media.iter().flat_map(|medium| &medium.stations);
        let mut names: Vec<String> = Vec::new();
        for station in nodes {
            if !names.contains(&station.node) {
                names.push(station.node.clone());
            }
        }
        let node = |medium: i32, station: u32| {
            let of = &plan.media[medium as usize].stations[station as usize].node;
            names.iter().position(|name| name == of).unwrap_or(0) as i32
        };
        let rows = || self.medium.iter().copied().zip(&self.seen);
        let seconds = |at: Time| at.as_secs_f64();
        Table {
            columns: vec![
                (
                    "at_s",
                    Column::Float(rows().map(|(_, frame)| seconds(frame.from)).collect()),
                ),
                (
                    "until_s",
                    Column::Float(rows().map(|(_, frame)| seconds(frame.until)).collect()),
                ),
                (
                    "medium",
                    Column::Word(
                        self.medium.clone(),
                        plan.media.iter().map(|medium| medium.name.clone()).collect(),
                    ),
                ),
                (
                    "station",
                    Column::Word(
                        rows().map(|(m, frame)| node(m, frame.station)).collect(),
                        names.clone(),
                    ),
                ),
                (
                    "to",
                    Column::Word(
                        rows().map(|(m, frame)| node(m, frame.to)).collect(),
                        names.clone(),
                    ),
                ),
                (
                    "kind",
                    Column::Word(rows().map(|(_, frame)| kind(frame.kind)).collect(), words(&KINDS)),
                ),
                (
                    "outcome",
                    Column::Word(
                        rows().map(|(_, frame)| outcome(frame.failed)).collect(),
                        words(&OUTCOMES),
                    ),
                ),
            ],
        }
    }
}

fn kind(kind: FrameKind) -> i32 {
    match kind {
        FrameKind::Rts => 0,
        FrameKind::Cts => 1,
        FrameKind::Data => 2,
        FrameKind::Ack => 3,
    }
}

fn outcome(failed: Option<DropReason>) -> i32 {
    match failed {
        None => 0,
        Some(DropReason::Collision) => 1,
        Some(DropReason::Contention) => 2,
        Some(DropReason::Outage) => 4,
        Some(_) => 3,
    }
}

//! What waits before each direction of each link, whenever that changed.

use crate::run::columns::{Column, Table};
use restp_base::time::{Duration, Time};
use restp_sim::World;

/// Notes of every direction.
pub(super) struct Queues {
    every: Duration,
    next: Time,
    /// What was noted last of each direction.
    last: Vec<(u64, u64)>,
    names: Vec<String>,
    at: Vec<f64>,
    line: Vec<i32>,
    packets: Vec<i64>,
    bytes: Vec<i64>,
}

impl Queues {
    pub(super) fn new(every: Duration) -> Self {
        Queues {
            every,
            next: Time::ZERO,
            last: Vec::new(),
            names: Vec::new(),
            at: Vec::new(),
            line: Vec::new(),
            packets: Vec::new(),
            bytes: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, now: Time, world: &mut World) {
        if now < self.next {
            return;
        }
        self.next = now + self.every;
        for (index, (name, packets, bytes)) in world.queues().enumerate() {
            if index == self.last.len() {
                self.names.push(name.to_owned());
                // Not what any queue holds, so that the first look is noted.
                self.last.push((u64::MAX, u64::MAX));
            }
            if self.last[index] != (packets, bytes) {
                self.last[index] = (packets, bytes);
                self.at.push(now.as_secs_f64());
                self.line.push(index as i32);
                self.packets.push(packets as i64);
                self.bytes.push(bytes as i64);
            }
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.at.len()
    }

    pub(super) fn table(self) -> Table {
        Table {
            columns: vec![
                ("at_s", Column::Float(self.at)),
                ("link", Column::Word(self.line, self.names)),
                ("packets", Column::Integer(self.packets)),
                ("bytes", Column::Integer(self.bytes)),
            ],
        }
    }
}

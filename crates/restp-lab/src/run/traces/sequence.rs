//! Every datagram at both ends, with the numbers in its header.

use super::flow_names;
use crate::registry::Numbers;
use crate::run::columns::{Column, Table};
use crate::run::observer::End;
use crate::run::setting::addresses;
use crate::scenario::Plan;
use restp_base::machine::PathAddress;
use restp_base::sequence::{ORIGIN, expand, truncate};
use restp_base::time::Time;

/// Notes of every datagram.
pub(super) struct Sequences {
    paths: Vec<Path>,
    at: Vec<f64>,
    flow: Vec<i32>,
    path: Vec<i64>,
    host: Vec<i32>,
    step: Vec<i32>,
    sequence: Vec<i64>,
    acknowledgement: Vec<i64>,
    payload: Vec<i64>,
}

/// One path of one flow: who it is, and the numbers met in each direction.
struct Path {
    opener: PathAddress,
    flow: usize,
    index: i64,
    /// Of what the opener sends, and of what the server sends.
    spaces: [Option<Space>; 2],
}

/// One space of numbers: the first that was seen, and the last, both unwrapped.
#[derive(Clone, Copy)]
struct Space {
    first: u64,
    last: u64,
}

impl Space {
    /// How far `wire` lies behind the first number of the space.
    fn place(space: &mut Option<Space>, wire: u32) -> i64 {
        let start = ORIGIN + u64::from(truncate(u64::from(wire)));
        let space = space.get_or_insert(Space {
            first: start,
            last: start,
        });
        space.last = expand(space.last, wire);
        space.last as i64 - space.first as i64
    }
}

impl Sequences {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut paths = Vec::new();
        for (flow, addresses) in addresses(plan).into_iter().enumerate() {
            for (index, opener) in addresses.into_iter().enumerate() {
                paths.push(Path {
                    opener,
                    flow,
                    index: index as i64,
                    spaces: [None; 2],
                });
            }
        }
        Sequences {
            paths,
            at: Vec::new(),
            flow: Vec::new(),
            path: Vec::new(),
            host: Vec::new(),
            step: Vec::new(),
            sequence: Vec::new(),
            acknowledgement: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// A datagram that goes along `path`, as its sender sees it, is `sent` by or arrives at `end`.
    pub(super) fn note(
        &mut self,
        now: Time,
        end: End,
        sent: bool,
        path: PathAddress,
        numbers: Option<Numbers>,
    ) {
        let by_opener = end.opens == sent;
        let opener = if by_opener { path } else { path.reversed() };
        let of_flow = |known: &&mut Path| known.flow == end.flow && known.opener == opener;
        let Some(known) = self.paths.iter_mut().find(of_flow) else {
            return;
        };
        let (own, other) = (usize::from(!by_opener), usize::from(by_opener));
        let numbers = numbers.unwrap_or_default();
        let mut place = |space: usize, wire: Option<u32>| {
            wire.map_or(-1, |wire| Space::place(&mut known.spaces[space], wire))
        };
        self.sequence.push(place(own, numbers.sequence));
        self.acknowledgement.push(place(other, numbers.acknowledgement));
        self.payload.push(numbers.payload_bytes as i64);
        self.at.push(now.as_secs_f64());
        self.flow.push(known.flow as i32);
        self.path.push(known.index);
        self.host.push(i32::from(!end.opens));
        self.step.push(i32::from(!sent));
    }

    pub(super) fn rows(&self) -> usize {
        self.at.len()
    }

    pub(super) fn table(self, plan: &Plan) -> Table {
        let words = |words: [&str; 2]| words.map(String::from).to_vec();
        Table {
            columns: vec![
                ("at_s", Column::Float(self.at)),
                ("flow", Column::Word(self.flow, flow_names(plan))),
                ("path", Column::Integer(self.path)),
                ("host", Column::Word(self.host, words(["opener", "server"]))),
                ("step", Column::Word(self.step, words(["sent", "received"]))),
                ("sequence", Column::Integer(self.sequence)),
                ("acknowledgement", Column::Integer(self.acknowledgement)),
                ("payload_bytes", Column::Integer(self.payload)),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_from_the_first_and_go_on_where_the_field_wraps() {
        let mut space = None;
        let places = [u32::MAX - 1, u32::MAX, 0, 1, u32::MAX].map(|wire| Space::place(&mut space, wire));
        assert_eq!(places, [0, 1, 2, 3, 1]);
    }
}

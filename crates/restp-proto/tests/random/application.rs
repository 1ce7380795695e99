//! A random application: writes pieces of all sizes when it likes, waits to be told when it is refused, stops reading
//! now and then, and finishes at some point.

use super::super::common::Pair;
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, Read, WriteError};
use restp_base::machine::Event;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_proto::ValidComposition;
use restp_services::connection_management::Establishment;
use restp_services::framing::Framing;
use std::collections::VecDeque;

pub struct Application {
    draw: Stream,
    pub flow: Option<FlowId>,
    connectionless: bool,
    anew: Vec<FlowId>,
    plan: VecDeque<Bytes>,
    writes_from: Time,
    blocked: bool,
    finished: bool,
    ended: bool,
    reads_again: Time,
    pause: f64,
    events_seen: usize,
    pub written: Vec<Bytes>,
    pub read: Vec<Bytes>,
    pub closed: Option<CloseReason>,
}

impl Application {
    pub fn draw(side: usize, composition: &ValidComposition, draw: &mut Stream) -> Self {
        let segment = composition.payload_bytes() as u64;
        let fixed = composition.framing == Framing::Fixed;
        let largest = if fixed {
            segment
        } else {
            1 + draw.below(4 * segment)
        };
        let total = draw.below(120).min(if draw.chance(0.2) { 0 } else { u64::MAX });
        let plan = (0..total)
            .map(|index| piece(side, index, 1 + draw.below(largest) as usize))
            .collect();
        Application {
            draw: Stream::named(draw.bits(), "application"),
            flow: None,
            connectionless: composition.establishment == Establishment::Connectionless,
            anew: Vec::new(),
            plan,
            writes_from: Time::ZERO + Duration::from_millis(draw.below(15_000)),
            blocked: false,
            finished: false,
            ended: false,
            reads_again: Time::ZERO,
            pause: if draw.chance(0.5) { 0.01 } else { 0.0 },
            events_seen: 0,
            written: Vec::new(),
            read: Vec::new(),
            closed: None,
        }
    }

    pub fn is_over(&self) -> bool {
        self.closed.is_some()
    }
    /// Nothing is left to do here but to wait for the end.
    pub fn is_quiet(&self) -> bool {
        self.finished
    }

    pub fn act(&mut self, side: usize, pair: &mut Pair) {
        while let Some(event) = pair.events[side].get(self.events_seen).cloned() {
            self.events_seen += 1;
            match event {
                Event::Accepted(flow) => {
                    if self.is_over() {
                        // Without a connection a late datagram begins anew what has ended.
                        assert!(self.connectionless, "one flow in each run");
                        pair.ends[side].abort(pair.now, flow);
                        self.anew.push(flow);
                    } else {
                        assert_eq!(self.flow.replace(flow), None, "one flow in each run");
                    }
                }
                Event::Writable(_) => self.blocked = false,
                Event::Closed(flow, _) if self.anew.contains(&flow) => {
                    pair.ends[side].release(pair.now, flow)
                }
                Event::Closed(flow, reason) => {
                    assert_eq!(self.closed.replace(reason), None, "a flow ends once");
                    self.read(side, pair, flow);
                    pair.ends[side].release(pair.now, flow);
                }
                Event::Connected(_) | Event::Readable(_) | Event::Path(..) => {}
            }
        }
        let Some(flow) = self.flow.filter(|_| self.closed.is_none()) else {
            return;
        };
        if pair.now >= self.writes_from {
            self.write(side, pair, flow);
        }
        if self.draw.chance(self.pause) && pair.now < Time::ZERO + super::BROKEN {
            self.reads_again = pair.now + Duration::from_millis(self.draw.below(3_000));
        }
        if pair.now >= self.reads_again {
            self.read(side, pair, flow);
        }
    }

    fn write(&mut self, side: usize, pair: &mut Pair, flow: FlowId) {
        for _ in 0..self.draw.below(8) {
            let Some(piece) = self.plan.front().filter(|_| !self.blocked) else {
                break;
            };
            match pair.ends[side].write(pair.now, flow, piece.clone()) {
                Ok(()) => self.written.extend(self.plan.pop_front()),
                Err(WriteError::Blocked) => self.blocked = true,
                Err(other) => panic!("side {side} cannot write: {other}"),
            }
        }
        if self.plan.is_empty() && !self.finished && self.draw.chance(0.02) {
            self.finished = true;
            pair.ends[side].finish(pair.now, flow);
        }
    }

    fn read(&mut self, side: usize, pair: &mut Pair, flow: FlowId) {
        loop {
            match pair.ends[side].read(pair.now, flow) {
                Read::Data(data) => {
                    assert!(!self.ended, "side {side}: data after the end");
                    self.read.push(data);
                }
                Read::Empty => break,
                Read::End => {
                    self.ended = true;
                    break;
                }
            }
        }
    }
}

/// Bytes that differ by side, write and position.
fn piece(side: usize, index: u64, length: usize) -> Bytes {
    let mut noise = Stream::named(index, if side == 0 { "from 0" } else { "from 1" });
    (0..length).map(|_| noise.bits() as u8).collect()
}

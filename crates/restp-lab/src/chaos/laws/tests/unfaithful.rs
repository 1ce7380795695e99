//! Machines that hand up something else than they should.

use super::*;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::streams::Streams;
use restp_base::time::Time;
use restp_proto::{Endpoint, EndpointConfig};

/// A machine that hands up, or sends, something else than it should.
struct Unfaithful {
    inner: Endpoint,
    sin: Sin,
    reads: u64,
    held: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sin {
    Drops,
    Repeats,
    Swaps,
    Changes,
    NeverEnds,
    Panics,
}

impl Flow for Unfaithful {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        self.inner.open(now, path, port)
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.inner.write(now, flow, data)
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        let waits = self.sin == Sin::Swaps && self.reads == 5;
        if let Some(held) = self.held.take_if(|_| !waits) {
            return Read::Data(held);
        }
        let Read::Data(data) = self.inner.read(now, flow) else {
            return self.inner.read(now, flow);
        };
        self.reads += 1;
        if self.reads != 5 {
            return Read::Data(data);
        }
        match self.sin {
            Sin::Drops => self.inner.read(now, flow),
            Sin::Repeats => {
                self.held = Some(data.clone());
                Read::Data(data)
            }
            Sin::Swaps => {
                self.held = Some(data); // until after the next
                Read::Empty
            }
            Sin::Changes => Read::Data(Bytes::from(vec![1; data.len()])),
            Sin::Panics => panic!("a machine that panics"),
            Sin::NeverEnds => Read::Data(data),
        }
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        if self.sin != Sin::NeverEnds {
            self.inner.finish(now, flow);
        }
    }
    fn streams(&mut self, now: Time, flow: FlowId) -> Option<&mut dyn Streams> {
        self.inner.streams(now, flow)
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        self.inner.abort(now, flow);
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.inner.release(now, flow);
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.inner.stats(flow)
    }
}

impl Machine for Unfaithful {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.inner.handle(now, input);
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.inner.poll_transmit(now, out)
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.inner.next_deadline()
    }
    fn held(&self) -> usize {
        self.inner.held()
    }
}

#[test]
fn an_unfaithful_machine_is_found_out() {
    let law = |case: &Case, sin: Sin| {
        let make = move |config: &EndpointConfig| -> Box<dyn Machine> {
            Box::new(Unfaithful {
                inner: Endpoint::new(config.clone()),
                sin,
                reads: 0,
                held: None,
            })
        };
        let outcome = crate::chaos::judge_with(case, &make);
        outcome
            .violation
            .unwrap_or_else(|| panic!("{sin:?} is not seen"))
            .law
    };
    assert_eq!(law(&reliable(), Sin::Drops), "order");
    assert_eq!(law(&reliable(), Sin::Swaps), "order");
    assert_eq!(law(&reliable(), Sin::Repeats), "once");
    assert_eq!(law(&reliable(), Sin::Changes), "once");
    assert_eq!(law(&unreliable(), Sin::Drops), "holes");
    assert_eq!(law(&reliable(), Sin::NeverEnds), "progress");
    assert_eq!(law(&reliable(), Sin::Panics), "panic");
}

//! Looking on while a point runs. What is observed never steers: a run gives the same result with and without.

use super::RunError;
use crate::host::{Application, Host};
use restp_base::flow::FlowId;
use restp_base::machine::Datagram;
use restp_base::observe::{self, Loss, Seen};
use restp_base::time::{Duration, Time};
use restp_sim::World;

/// One end of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The flow, by its place in the plan.
    pub flow: usize,
    /// Is it the one that opens the flow and sends?
    pub opens: bool,
}

/// Sees what hosts do.
pub trait Observer {
    /// A datagram arrived; its path still is that of its sender.
    fn arrived(&mut self, now: Time, end: End, datagram: &Datagram);

    /// A datagram leaves.
    fn sent(&mut self, now: Time, end: End, datagram: &Datagram);

    /// A sender takes a segment for lost.
    fn lost(&mut self, now: Time, end: End, flow: FlowId, loss: &Loss);

    /// A host has done everything that followed from one input.
    ///
    /// # Errors
    /// To end the run.
    fn settled(&mut self, now: Time, end: End, host: &Host, world: &mut World) -> Result<(), RunError>;
}

/// Everything is shown to those who asked for it, each at an end of its own.
pub struct Shown {
    /// By flow: at its opener, then at the other end.
    to: Vec<Option<observe::Observer>>,
    /// So many changes of services have been shown, in the same order.
    changes: Vec<usize>,
}

impl Shown {
    /// To these, by flow: at its opener, then at the other end.
    pub fn to(to: Vec<Option<observe::Observer>>) -> Self {
        let changes = vec![0; to.len()];
        Shown { to, changes }
    }

    fn show(&mut self, now: Time, end: End, seen: Seen<'_>) {
        if let Some(Some(observer)) = self.to.get_mut(2 * end.flow + usize::from(!end.opens)) {
            observer(now, seen);
        }
    }
}

impl Observer for Shown {
    fn arrived(&mut self, now: Time, end: End, datagram: &Datagram) {
        let mut own = datagram.clone();
        own.path = own.path.reversed();
        self.show(now, end, Seen::Received(&own));
    }

    fn sent(&mut self, now: Time, end: End, datagram: &Datagram) {
        self.show(now, end, Seen::Sent(datagram));
    }

    fn lost(&mut self, now: Time, end: End, flow: FlowId, loss: &Loss) {
        self.show(now, end, Seen::Lost(flow, loss));
    }

    fn settled(&mut self, now: Time, end: End, host: &Host, _: &mut World) -> Result<(), RunError> {
        let flow = match &host.application {
            Application::Sender(sender) => sender.flow(),
            Application::Receiver(receiver) => receiver.flow(),
        };
        if let Some(flow) = flow {
            let index = 2 * end.flow + usize::from(!end.opens);
            let known = self
                .changes
                .get_mut(index)
                .map(|shown| std::mem::replace(shown, host.changes().len()));
            for changed in host.changes().iter().skip(known.unwrap_or(usize::MAX)) {
                self.show(now, end, Seen::Changed(flow, changed));
            }
        }
        if let Some((flow, stats)) = flow.and_then(|flow| Some((flow, host.machine().stats(flow)?))) {
            self.show(now, end, Seen::Measured(flow, &stats));
        }
        Ok(())
    }
}

/// Tells how far a run has come, beside another observer.
pub struct Advancing<'a, O> {
    inner: O,
    tell: &'a (dyn Fn(u64) + Sync),
    duration: Duration,
    /// In thousandths of the run.
    told: u64,
}

impl<'a, O: Observer> Advancing<'a, O> {
    /// Tells `tell` of a run of this duration.
    pub fn new(inner: O, duration: Duration, tell: &'a (dyn Fn(u64) + Sync)) -> Self {
        Advancing {
            inner,
            tell,
            duration,
            told: 0,
        }
    }

    /// The run has come to `now`.
    fn reach(&mut self, now: Time) {
        let done = u128::from(now.as_nanos()) * 1000 / u128::from(self.duration.as_nanos().max(1));
        let done = done.min(1000) as u64;
        if done > self.told {
            (self.tell)(done - self.told);
            self.told = done;
        }
    }

    /// It is over, perhaps before its time.
    pub fn finish(mut self) {
        self.reach(Time::MAX);
    }
}

impl<O: Observer> Observer for Advancing<'_, O> {
    fn arrived(&mut self, now: Time, end: End, datagram: &Datagram) {
        self.inner.arrived(now, end, datagram);
    }
    fn sent(&mut self, now: Time, end: End, datagram: &Datagram) {
        self.inner.sent(now, end, datagram);
    }
    fn lost(&mut self, now: Time, end: End, flow: FlowId, loss: &Loss) {
        self.inner.lost(now, end, flow, loss);
    }
    fn settled(&mut self, now: Time, end: End, host: &Host, world: &mut World) -> Result<(), RunError> {
        self.reach(now);
        self.inner.settled(now, end, host, world)
    }
}

/// Nobody looks on.
pub struct Nobody;

impl Observer for Nobody {
    fn arrived(&mut self, _: Time, _: End, _: &Datagram) {}
    fn sent(&mut self, _: Time, _: End, _: &Datagram) {}
    fn lost(&mut self, _: Time, _: End, _: FlowId, _: &Loss) {}
    fn settled(&mut self, _: Time, _: End, _: &Host, _: &mut World) -> Result<(), RunError> {
        Ok(())
    }
}

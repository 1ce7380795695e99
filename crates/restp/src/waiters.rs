//! Who waits for what of a connection.

use restp_base::streams::{StreamEvent, StreamId};
use std::collections::BTreeMap;
use std::task::{Context, Waker};

/// Tasks that wait for one thing. All are woken and look for themselves.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(crate) fn register(&mut self, cx: &Context<'_>) {
        if !self.0.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.0.push(cx.waker().clone());
        }
    }

    pub(crate) fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

/// Who waits for something of the streams of a connection.
#[derive(Debug, Default)]
pub(crate) struct StreamWaiters {
    pub(crate) openers: Wakers,
    pub(crate) acceptors: Wakers,
    pub(crate) readers: BTreeMap<StreamId, Wakers>,
    pub(crate) writers: BTreeMap<StreamId, Wakers>,
}

impl StreamWaiters {
    pub(crate) fn on_event(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened => self.acceptors.wake(),
            StreamEvent::Available => self.openers.wake(),
            StreamEvent::Readable(id) => wake(self.readers.remove(&id)),
            StreamEvent::Writable(id) => wake(self.writers.remove(&id)),
        }
    }

    /// The peer opens no more streams.
    pub(crate) fn on_last(&mut self) {
        self.acceptors.wake();
    }

    /// Removes the wakers of the stream, also those of futures that were dropped.
    pub(crate) fn forget(&mut self, id: StreamId) {
        self.readers.remove(&id);
        self.writers.remove(&id);
    }

    pub(crate) fn wake_all(&mut self) {
        let all = std::mem::take(self);
        wake([all.openers, all.acceptors]);
        wake(all.readers.into_values().chain(all.writers.into_values()));
    }
}

fn wake(waiting: impl IntoIterator<Item = Wakers>) {
    waiting.into_iter().for_each(|mut wakers| wakers.wake());
}

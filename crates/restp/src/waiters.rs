//! Who waits for what of a connection.

//!
//! [`Notify`] forgets who waits no more. A list of wakers does not: whether two of them wake the same task cannot always be told
//! (`Waker::will_wake`), and a task that looks often would be in it as often.

use restp_base::streams::{StreamEvent, StreamId};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Tasks that wait for one thing. All are woken and look for themselves.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Arc<Notify>);

/// Until what is waited for may have happened.
pub(crate) type Waiting = OwnedNotified;

/// What a look found, or what it has to wait for.
pub(crate) type Looked<T> = Result<T, Waiting>;

impl Waiters {
    /// Until the next [`Waiters::wake`] after this call.
    pub(crate) fn wait(&self) -> Waiting {
        self.0.clone().notified_owned()
    }

    pub(crate) fn wake(&self) {
        self.0.notify_waiters();
    }
}

/// Looks until something is found.
pub(crate) async fn until<T>(mut look: impl FnMut() -> Looked<T>) -> T {
    loop {
        match look() {
            Ok(found) => return found,
            Err(waiting) => waiting.await,
        }
    }
}

/// The same for who polls: the last who did is woken.
#[derive(Debug, Default)]
pub(crate) struct Polled(Option<Pin<Box<Waiting>>>);

impl Polled {
    pub(crate) fn poll<T>(&mut self, cx: &mut Context<'_>, mut look: impl FnMut() -> Looked<T>) -> Poll<T> {
        loop {
            match look() {
                Ok(found) => {
                    self.0 = None;
                    return Poll::Ready(found);
                }
                Err(waiting) => ready!(self.0.insert(Box::pin(waiting)).as_mut().poll(cx)),
            }
        }
    }
}

/// Who waits for something of the streams of a connection.
#[derive(Debug, Default)]
pub(crate) struct StreamWaiters {
    pub(crate) openers: Waiters,
    pub(crate) acceptors: Waiters,
    pub(crate) readers: BTreeMap<StreamId, Waiters>,
    pub(crate) writers: BTreeMap<StreamId, Waiters>,
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

    /// The handle of the stream is dropped: nobody can wait for it.
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

fn wake(waiting: impl IntoIterator<Item = Waiters>) {
    waiting.into_iter().for_each(|waiters| waiters.wake());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Counted>, Waker) {
        let counted = Arc::new(Counted(AtomicUsize::new(0)));
        (counted.clone(), counted.into())
    }

    /// A connection that nothing happened to kept the wakers of all who had ever looked at it, and looked at each of them at every look.
    #[test]
    fn who_waits_no_more_is_forgotten() {
        let waiters = Waiters::default();
        for _ in 0..100 {
            let (task, waker) = counted();
            let mut waiting = Box::pin(waiters.wait());
            assert!(
                waiting
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            drop((waiting, waker));
            assert_eq!(Arc::strong_count(&task), 1, "it has no waker of this task");
        }
    }

    #[test]
    fn all_who_wait_are_woken_also_those_who_have_not_looked_since() {
        let waiters = Waiters::default();
        let (task, waker) = counted();
        let mut cx = Context::from_waker(&waker);
        let mut first = Box::pin(waiters.wait());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let mut second = Box::pin(waiters.wait());
        waiters.wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(first.as_mut().poll(&mut cx).is_ready());
        assert!(second.as_mut().poll(&mut cx).is_ready());
        assert!(Box::pin(waiters.wait()).as_mut().poll(&mut cx).is_pending());
    }

    #[test]
    fn who_polls_is_woken_by_what_happens_between_its_look_and_its_wait() {
        let waiters = Waiters::default();
        let (task, waker) = counted();
        let mut cx = Context::from_waker(&waker);
        let mut polled = Polled::default();
        assert!(polled.poll(&mut cx, || Err::<(), _>(waiters.wait())).is_pending());
        waiters.wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        let mut looks = 0;
        let found = polled.poll(&mut cx, || {
            looks += 1;
            let waiting = waiters.wait();
            waiters.wake();
            if looks == 2 { Ok(looks) } else { Err(waiting) }
        });
        assert_eq!(found, Poll::Ready(2));
    }
}

//! The loop that turns a [`Machine`](restp_base::machine::Machine) on real sockets. It is the loop of the simulator's host with a
//! clock, and knows no protocol: any machine runs over UDP through it, and several of them at the same ports.
//!
//! One task owns sockets and timer. Each machine stands behind a lock that application handles share, so
//! a write or a read is one function call on the machine: no queue between application and protocol, no copy,
//! and no wake-up per message. The driver is woken once for all the calls an application makes between two of
//! its turns, and what they produced leaves in batches.
//!
//! The first machine, the *host*, has bound the sockets. Others join it as *guests*: the first byte of a datagram says whose it is.
//! Where the kernel tells them apart as well, a guest receives at a socket of its own, with a buffer of its own
//! ([`Socket::beside`]). In each round every socket is read once and every machine sends as much, so that none waits for more than a
//! round of the others, whatever comes for them.
//!
//! | Module | Holds |
//! |---|---|
//! | `hosted` | what a driver does with a machine |
//! | `seat` | a machine's place: what is for it, and what waits to leave |

mod hosted;
mod seat;
pub(crate) mod shared;

use crate::clock::Clock;
use crate::socket::{Inbox, Screen, Socket, SocketStats, ecn_of};
use hosted::{Awake, Run};
use restp_base::machine::{Datagram, Machine};
use restp_base::time::{Duration, Time};
use restp_seal::gate::Gate;
pub(crate) use seat::Joining;
use seat::Seat;
use shared::Shared;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Receive-and-send rounds of one wake-up. A flood keeps the task busy no longer than this (about 3 000 full
/// datagrams, one millisecond); then the runtime's other tasks have their turn.
const ROUNDS: usize = 4;

/// The shortest sleep the runtime's timer knows; also the pause after an error of a receive.
const TICK: Duration = Duration::from_millis(1);

/// The task that owns sockets and timer. It ends when the endpoint of its host is closed and every flow of that is over.
pub(crate) struct Driver {
    host: Seat,
    guests: Vec<Guest>,
    inlets: Vec<Inlet>,
    inbox: Inbox,
    work: Work,
    /// The sockets this wake-up works with; they change with the addresses of this host.
    sockets: Arc<[Arc<Socket>]>,
    gate: Option<Gate>,
    timer: Pin<Box<tokio::time::Sleep>>,
    /// What the timer is set to. It may be earlier than needed: then the wake-up does nothing, which is cheaper
    /// than to move the timer for each packet that moves a deadline.
    armed: Option<Time>,
}

/// A machine beside the host.
struct Guest {
    seat: Seat,
    /// Datagrams that begin so are for it.
    first_bytes: RangeInclusive<u8>,
}

impl From<Joining> for Guest {
    fn from(joining: Joining) -> Self {
        Guest {
            seat: Seat::new(joining.machine),
            first_bytes: joining.first_bytes,
        }
    }
}

/// A socket that is read, and who is kept out there.
struct Inlet {
    socket: Arc<Socket>,
    screen: Screen,
}

/// What the machines of a driver use one after the other.
pub(crate) struct Work {
    clock: Clock,
    now: Time,
    /// Reused for every datagram out.
    datagram: Datagram,
    stats: SocketStats,
}

impl Work {
    fn read_clock(&mut self) {
        self.now = self.clock.now();
    }
}

/// How a round of sending ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sending {
    /// Nothing more to send; handles wake the driver from now on.
    Done,
    /// The kernel has no room in any socket; the task wakes when there is.
    Blocked,
    /// There is more, and its turn is over.
    More,
}

impl Driver {
    /// `gate`: what tells unknown peers from others, if the host does.
    pub(crate) fn new<M: Machine + Send + 'static>(shared: Arc<Shared<M>>, gate: Option<Gate>) -> Self {
        let clock = shared.lock().clock();
        Driver {
            host: Seat::new(shared),
            guests: Vec::new(),
            inlets: Vec::new(),
            inbox: Inbox::new(),
            work: Work {
                clock,
                now: Time::ZERO,
                datagram: Datagram::empty(),
                stats: SocketStats::default(),
            },
            sockets: Arc::new([]),
            gate,
            timer: Box::pin(tokio::time::sleep_until(clock.instant(Time::ZERO).into())),
            armed: None,
        }
    }

    /// Reads the clock, and hands over the deadlines that have come. False when the host is not to be called any more.
    fn wake_up(&mut self) -> bool {
        self.work.read_clock();
        if self.armed.is_some_and(|armed| armed <= self.work.now) {
            self.armed = None;
        }
        let Some(Awake {
            now,
            sockets,
            mut joining,
        }) = self.host.machine.wake(self.work.now)
        else {
            return false;
        };
        self.work.now = now;
        for Guest { seat, .. } in &self.guests {
            if let Some(awake) = seat.machine.wake(self.work.now) {
                self.work.now = awake.now;
                joining.extend(awake.joining);
            }
        }
        let have_joined = !joining.is_empty();
        self.guests.extend(joining.into_iter().map(Guest::from));
        if have_joined || !Arc::ptr_eq(&self.sockets, &sockets) {
            self.sockets = sockets;
            self.follow();
        }
        true
    }

    /// The sockets are others, or machines have joined or left.
    fn follow(&mut self) {
        self.host.follow(&self.sockets, Arc::clone);
        for (place, Guest { seat, first_bytes }) in self.guests.iter_mut().enumerate() {
            seat.machine.follow(&self.sockets);
            if place > 0 {
                // The kernel tells two of them apart: what it did for a second one would take the first one's room away.
                seat.follow(&self.sockets, Arc::clone);
                continue;
            }
            // All have to permit it before one gets a neighbour.
            self.sockets.iter().for_each(|socket| socket.permit_beside());
            seat.follow(&self.sockets, |bound| match bound.beside(first_bytes) {
                Ok(own) => Arc::new(own),
                Err(error) => {
                    tracing::debug!(%error, local = %bound.local(), "one buffer for all that comes to this port");
                    bound.clone()
                }
            });
        }
        let all: Vec<_> = self.seats().flat_map(Seat::sockets).cloned().collect();
        let same = |inlet: &Inlet, socket: &Arc<Socket>| Arc::ptr_eq(&inlet.socket, socket);
        self.inlets
            .retain(|inlet| all.iter().any(|socket| same(inlet, socket)));
        for socket in all {
            if !self.inlets.iter().any(|inlet| same(inlet, &socket)) {
                // A guest's as well: the kernel may hand over datagrams for the host behind one for the guest, as one message.
                let screen = Screen::new(self.gate.clone());
                self.inlets.push(Inlet { socket, screen });
            }
        }
        let passing = self.guests.iter().map(|guest| guest.first_bytes.clone());
        let passing: Vec<_> = passing.collect();
        for inlet in &mut self.inlets {
            inlet.screen.pass(&passing);
        }
    }

    /// The host's, then those of guests.
    fn seats(&self) -> impl Iterator<Item = &Seat> {
        std::iter::once(&self.host).chain(self.guests.iter().map(|guest| &guest.seat))
    }

    /// Reads every socket once. True when one of them may have more.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut more = false;
        let work = &mut self.work;
        for Inlet { socket, screen } in &mut self.inlets {
            socket.screened_by(screen, work.now);
            match socket.poll_receive(cx, &mut self.inbox) {
                Poll::Pending => continue,
                Poll::Ready(Ok(())) => more = true,
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, local = %socket.local(), "receiving failed");
                    work.stats.receive_errors += 1;
                    continue;
                }
            }
            work.stats.receive_calls += 1;
            // These may have come after the last reading, by as long as the system withheld the processor since: with that
            // time a round trip would look shorter than the path allows, and nothing forgets a shortest round trip soon.
            work.read_clock();
            for (meta, mut bytes) in self.inbox.messages() {
                if meta.stride == 0 || meta.addr.port() == 0 {
                    work.stats.receive_drops += 1;
                    continue;
                }
                let guests = &self.guests;
                let owner = |first: u8| guests.iter().position(|guest| guest.first_bytes.contains(&first));
                while let Some(first) = bytes.first() {
                    let to = owner(*first);
                    let others = bytes.chunks(meta.stride).position(|next| owner(next[0]) != to);
                    let run = Run {
                        path: socket.path(&meta),
                        ecn: ecn_of(&meta),
                        stride: meta.stride,
                        bytes: bytes.split_to(others.map_or(bytes.len(), |others| others * meta.stride)),
                    };
                    let seat = to.map_or(&self.host, |guest| &self.guests[guest].seat);
                    work.now = seat.machine.receive(work.now, run, screen, &mut work.stats);
                }
            }
        }
        more
    }

    /// Every machine sends, as much as its turn allows.
    fn send(&mut self, cx: &mut Context<'_>) -> Sending {
        let guests = self.guests.iter_mut().map(|guest| &mut guest.seat);
        let all = std::iter::once(&mut self.host).chain(guests);
        let ends = all.map(|seat| seat.send(&mut self.work, cx));
        ends.max().unwrap_or(Sending::Done)
    }

    /// Receives and sends, a few rounds at most. True when nothing more has come, and nothing more can leave.
    fn rounds(&mut self, cx: &mut Context<'_>) -> bool {
        (0..ROUNDS).any(|_| {
            let received = self.receive(cx);
            let sending = self.send(cx);
            !received && sending != Sending::More
        })
    }

    /// Guests that have come to their end leave.
    fn dismiss(&mut self) {
        let (work, before) = (&self.work, self.guests.len());
        self.guests.retain_mut(|Guest { seat, .. }| {
            let is_over = seat.is_over(work.now);
            if is_over {
                seat.machine.stop(work.stats);
            }
            !is_over
        });
        if self.guests.len() < before {
            self.follow();
        }
    }

    /// Sets the timer to the next deadline.
    fn sleep(&mut self, cx: &mut Context<'_>, receive_failed: bool) {
        let now = self.work.now;
        let seats = self.seats().map(Seat::wakes);
        let retry = receive_failed.then_some(now + TICK);
        let screens = self.inlets.iter().map(|inlet| inlet.screen.wakes());
        let wakes = seats.chain(screens).chain([retry]);
        let Some(mut wake) = wakes.flatten().min() else {
            return;
        };
        // A deadline that was handled and still stands waits for something else, such as room in the kernel.
        if wake <= now {
            wake = now + TICK;
        }
        if self.armed.is_none_or(|armed| wake < armed) {
            self.timer.as_mut().reset(self.work.clock.instant(wake).into());
            self.armed = Some(wake);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            self.armed = None;
            cx.waker().wake_by_ref();
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        if !driver.wake_up() {
            return Poll::Ready(());
        }
        let errors = driver.work.stats.receive_errors;
        let is_idle = driver.rounds(cx);
        // Looked at in a flood as well, and while a guest has more to send.
        if driver.host.is_over(driver.work.now) {
            return Poll::Ready(());
        }
        driver.dismiss();
        if is_idle {
            driver.sleep(cx, driver.work.stats.receive_errors > errors);
        } else {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Driver {
    /// Also when the runtime shuts down or a machine panicked: whoever waits is woken.
    fn drop(&mut self) {
        self.seats().for_each(|seat| seat.machine.stop(self.work.stats));
    }
}

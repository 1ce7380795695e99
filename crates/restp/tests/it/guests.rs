//! Machines beside the host of a port, whatever they are: each comes to its end when it should, and takes nobody with it.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{loopback, within};
use bytes::Bytes;
use restp::{CloseReason, Connection, Endpoint};
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use std::collections::VecDeque;
use std::net::UdpSocket;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The flow that each puppet may have.
const FLOW: FlowId = FlowId(1);

/// What a puppet does when a datagram says so in its second byte.
const COUNT: u8 = 0;
const END_ITS_FLOW: u8 = 1;
const PANIC: u8 = 2;
const TALK_FOR_EVER: u8 = 3;

/// A machine that does what it is told.
#[derive(Debug, Default)]
struct Puppet {
    seen: Arc<AtomicU64>,
    events: VecDeque<Event>,
    talks: Option<PathAddress>,
    /// Datagrams that wait to leave, and where to.
    words: Option<(PathAddress, u64)>,
    said: Arc<AtomicU64>,
    deadline: Option<Time>,
}

impl Machine for Puppet {
    fn handle(&mut self, _: Time, input: Input<'_>) {
        let Input::Datagram(datagram) = input else {
            return;
        };
        self.seen.fetch_add(1, Ordering::Relaxed);
        match datagram.body.get(1) {
            Some(&END_ITS_FLOW) => self.events.push_back(Event::Closed(FLOW, CloseReason::Finished)),
            Some(&PANIC) => {
                self.words = Some((datagram.path, 5));
                panic!("as it was told")
            }
            Some(&TALK_FOR_EVER) => self.talks = Some(datagram.path),
            _ => {}
        }
    }
    fn poll_transmit(&mut self, _: Time, out: &mut Datagram) -> bool {
        let waits = self.words.take_if(|(_, words)| *words > 0);
        self.words = waits.map(|(path, words)| (path, words - 1));
        let path = self.talks.or(waits.map(|(path, _)| path));
        if let Some(path) = path {
            *out = Datagram::empty();
            (out.path, out.body) = (path, Bytes::from_static(&[0; 100]));
            self.said.fetch_add(1, Ordering::Relaxed);
        }
        path.is_some()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.deadline.map(|deadline| (deadline, Wakeup::Expiry))
    }
    fn held(&self) -> usize {
        0
    }
}

impl Flow for Puppet {
    fn open(&mut self, _: Time, _: PathAddress, _: u16) -> Result<FlowId, OpenError> {
        Ok(FLOW)
    }
    fn write(&mut self, _: Time, _: FlowId, _: Bytes) -> Result<(), WriteError> {
        Err(WriteError::Closed)
    }
    fn read(&mut self, _: Time, _: FlowId) -> Read {
        Read::Empty
    }
    fn finish(&mut self, _: Time, _: FlowId) {}
    fn abort(&mut self, _: Time, _: FlowId) {}
    fn release(&mut self, _: Time, _: FlowId) {}
    fn stats(&self, _: FlowId) -> Option<FlowStats> {
        None
    }
}

fn host() -> Endpoint<Puppet> {
    Endpoint::with_machine(Puppet::default(), &[loopback()]).unwrap()
}

fn guest(host: &Endpoint<Puppet>, first_bytes: RangeInclusive<u8>) -> Endpoint<Puppet> {
    host.share_port(Puppet::default(), first_bytes)
}

/// A program that tells puppets at this port what to do.
struct Teller(UdpSocket);

impl Teller {
    fn of(host: &Endpoint<Puppet>) -> Self {
        let socket = UdpSocket::bind(loopback()).unwrap();
        socket.connect(host.local_addr()).unwrap();
        Teller(socket)
    }

    fn tell(&self, first: u8, act: u8) {
        self.0.send(&[first, act]).unwrap();
    }

    /// Tells `puppet` something harmless, and waits until it was heard.
    async fn reaches(&self, first: u8, puppet: &Endpoint<Puppet>) {
        let seen = || seen(puppet);
        let before = seen();
        self.tell(first, COUNT);
        until("it is heard", || seen() > before).await;
    }
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let wait = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    within(what, wait).await;
}

/// How many datagrams it has been told.
fn seen(puppet: &Endpoint<Puppet>) -> u64 {
    puppet.call(|puppet, _| puppet.seen.load(Ordering::Relaxed))
}

fn flow(of: &Endpoint<Puppet>) -> Connection<Puppet> {
    of.adopt(FLOW)
}

/// Nothing wakes the driver any more when the flow ends in its own turn.
#[tokio::test]
async fn a_guest_that_waits_for_its_last_flow_leaves_when_a_datagram_ends_that() {
    let host = host();
    let guest = guest(&host, 1..=1);
    let teller = Teller::of(&host);
    teller.reaches(1, &guest).await;
    let connection = flow(&guest);
    let closing = tokio::spawn(guest.close());
    tokio::task::yield_now().await;
    teller.reaches(0, &host).await;
    assert!(!closing.is_finished(), "its flow is open");
    teller.tell(1, END_ITS_FLOW);
    within("the end of the guest", closing).await.unwrap();
    assert_eq!(connection.closed().await, CloseReason::Finished);
    teller.reaches(1, &host).await;
}

#[tokio::test]
async fn a_host_comes_to_its_end_though_a_guest_never_stops_talking() {
    let host = host();
    let guest = guest(&host, 1..=1);
    let teller = Teller::of(&host);
    teller.reaches(1, &guest).await;
    teller.tell(1, TALK_FOR_EVER);
    until("it talks", || guest.call(|puppet, _| puppet.talks.is_some())).await;
    within("the end of the host", host.close()).await;
    within("and of its guest", guest.close()).await;
}

#[tokio::test]
async fn a_guest_of_a_guest_is_one_of_the_same_host() {
    let host = host();
    let first = guest(&host, 1..=1);
    let second = guest(&first, 2..=2);
    let teller = Teller::of(&host);
    for (byte, puppet) in [(0, &host), (1, &first), (2, &second)] {
        teller.reaches(byte, puppet).await;
    }
    within("the first", first.close()).await;
    teller.reaches(2, &second).await;
    within("the second", second.close()).await;
    within("the host", host.close()).await;
}

#[test]
fn a_guest_that_its_driver_never_met_waits_for_nobody_when_the_runtime_ends() {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = run().unwrap();
    let guest = runtime.block_on(async { guest(&host(), 1..=1) });
    drop(runtime);
    run()
        .unwrap()
        .block_on(async { within("its end", guest.close()).await });
}

#[tokio::test]
async fn a_guest_that_panics_in_the_drivers_turn_ends_alone() {
    let host = host();
    let (first, second) = (guest(&host, 1..=1), guest(&host, 2..=2));
    let teller = Teller::of(&host);
    teller.reaches(1, &first).await;
    let connection = flow(&first);
    let said = first.call(|puppet, _| puppet.said.clone());
    teller.tell(1, PANIC);
    assert_eq!(
        within("its flow", connection.closed()).await,
        CloseReason::Aborted
    );
    assert_eq!(said.load(Ordering::Relaxed), 0, "nobody calls it any more");
    teller.reaches(2, &second).await;
    teller.reaches(0, &host).await;
    teller.reaches(1, &host).await;
    within("the guest", first.close()).await;
}

#[tokio::test]
async fn of_machines_that_want_the_same_the_first_gets_it_until_it_leaves() {
    let host = host();
    let (first, second) = (guest(&host, 1..=2), guest(&host, 2..=3));
    let teller = Teller::of(&host);
    teller.reaches(2, &first).await;
    teller.reaches(3, &second).await;
    assert_eq!(seen(&second), 1);
    within("the first", first.close()).await;
    teller.reaches(2, &second).await;
    teller.reaches(1, &host).await;
}

/// The kernel would take what is for the first to the host, if it were told of the second.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_second_guest_takes_the_first_ones_room_from_nobody() {
    /// More datagrams than a socket of these tests has room for, some 800 bytes in the kernel each.
    const TOO_MANY: usize = 60_000;
    let host = host();
    let (first, second) = (guest(&host, 1..=1), guest(&host, 2..=2));
    let teller = Teller::of(&host);
    teller.reaches(1, &first).await;
    teller.reaches(2, &second).await;
    // The driver has no turn.
    (0..TOO_MANY).for_each(|_| teller.tell(1, COUNT));
    (0..10).for_each(|_| teller.tell(0, COUNT));
    until("all ten", || seen(&host) == 10).await;
}

#[tokio::test]
async fn what_a_guest_has_to_say_leaves_before_it_does() {
    let host = host();
    let guest = guest(&host, 1..=1);
    let teller = Teller::of(&host);
    teller.reaches(1, &guest).await;
    let path = PathAddress {
        local: host.local_addr(),
        remote: teller.0.local_addr().unwrap(),
    };
    // More than one turn takes, and nobody wakes the driver for the rest.
    let said = guest.call(|puppet, _| {
        puppet.words = Some((path, 5000));
        puppet.said.clone()
    });
    drop(guest);
    until("all of it", || said.load(Ordering::Relaxed) == 5000).await;
}

#[tokio::test]
async fn a_closed_machine_with_a_deadline_has_a_moment_and_no_more() {
    let far = |puppet: &mut Puppet, _| {
        puppet.deadline = Some(Time::MAX);
        puppet.seen.clone()
    };
    let host = host();
    let (guest, other) = (guest(&host, 1..=1), guest(&host, 2..=2));
    let teller = Teller::of(&host);
    for (byte, puppet) in [(0, &host), (1, &guest), (2, &other)] {
        teller.reaches(byte, puppet).await;
        puppet.call(far);
    }
    let heard = guest.call(far);
    drop(guest);
    teller.tell(1, COUNT);
    until("it hears of it", || heard.load(Ordering::Relaxed) == 2).await;
    within("its end", other.close()).await;
    within("and that of the host", host.close()).await;
}

#[tokio::test]
async fn who_joins_a_host_that_runs_is_heard_and_answers() {
    let host = host();
    let teller = Teller::of(&host);
    teller.reaches(0, &host).await;
    let guest = guest(&host, 1..=1);
    teller.reaches(1, &guest).await;
    teller.tell(1, TALK_FOR_EVER);
    teller.0.set_nonblocking(true).unwrap();
    until("an answer", || teller.0.recv(&mut [0; 100]).is_ok()).await;
    assert_eq!(seen(&host), 1);
}

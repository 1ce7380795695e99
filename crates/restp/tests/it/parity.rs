//! One engine, two drivers: the same script in the simulator and over sockets gives the same application events.

use crate::common::connect;
use bytes::Bytes;
use restp::{Acceptance, CloseReason, Endpoint, EndpointConfig, Preset};
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_lab::host::{Application, Directory, End, Host, Seat};
use restp_lab::traffic::{Attempt, Moments, PORT, Receiver, Sender, Traffic};
use restp_sim::{DirectionSpec, HostEvent, LinkSpec, World};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

const FILE_BYTES: u64 = 300_000;

/// What one application saw: events without their timing, and how much it read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    events: Vec<String>,
    read_bytes: usize,
    ended: bool,
}

/// A machine that keeps the account of what it tells its application.
struct Recorder {
    engine: restp_proto::Endpoint,
    account: Arc<Mutex<Account>>,
}

impl Recorder {
    fn new(config: EndpointConfig) -> (Self, Arc<Mutex<Account>>) {
        let account = Arc::default();
        (
            Recorder {
                engine: restp_proto::Endpoint::new(config),
                account: Arc::clone(&account),
            },
            account,
        )
    }

    fn note(&self, note: impl FnOnce(&mut Account)) {
        note(&mut self.account.lock().expect("no panic while noting"));
    }
}

impl Machine for Recorder {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.engine.handle(now, input);
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.engine.poll_transmit(now, out)
    }
    fn poll_event(&mut self) -> Option<Event> {
        let event = self.engine.poll_event()?;
        let name = match &event {
            Event::Accepted(_) => "accepted".into(),
            Event::Connected(_) => "connected".into(),
            Event::Readable(_) => "readable".into(),
            // When a buffer is full is a matter of timing.
            Event::Writable(_) => return Some(event),
            Event::Path(_, _, state) => format!("path: {state:?}"),
            Event::Closed(_, reason) => format!("closed: {reason}"),
            Event::Stream(_, event) => format!("stream: {event:?}"),
        };
        // So is how often there is something to read.
        self.note(|account| {
            if !account.events.contains(&name) {
                account.events.push(name);
            }
        });
        Some(event)
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.engine.next_deadline()
    }
    fn held(&self) -> usize {
        self.engine.held()
    }
}

impl Flow for Recorder {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        self.engine.open(now, path, port)
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.engine.write(now, flow, data)
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        let read = self.engine.read(now, flow);
        self.note(|account| match &read {
            Read::Data(data) => account.read_bytes += data.len(),
            Read::Empty => {}
            Read::End => account.ended = true,
        });
        read
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        self.engine.finish(now, flow);
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        self.engine.abort(now, flow);
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.engine.release(now, flow);
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.engine.stats(flow)
    }
}

fn config() -> EndpointConfig {
    let composition = Preset::named("default").expect("a preset").composition();
    EndpointConfig::new(composition.check().expect("valid"))
}

/// The script in virtual time: one file, then the end from both sides.
fn simulated() -> [Account; 2] {
    let wire = DirectionSpec {
        delay: Duration::from_millis(1),
        ..DirectionSpec::default()
    };
    let mut world = World::new(&[LinkSpec::symmetric("wire", ["a", "b"], wire)], 1).expect("a network");
    let ids = ["a", "b"].map(|name| {
        let node = world.node(name).expect("a node of the link");
        world.attach(node)
    });
    let mut directory = Directory::default();
    let [local, remote] = ids.map(|id| directory.add(id));
    let path = PathAddress { local, remote };
    let traffic = Traffic::File { bytes: FILE_BYTES };
    let (client, client_account) = Recorder::new(config());
    let (server, server_account) = Recorder::new(config().listen(PORT, Acceptance::Any));
    let (stream, moments) = (Stream::named(1, "flow/a"), Moments::default());
    let paths = vec![Attempt { path, backup: false }];
    let sender = Application::Sender(Sender::new(
        paths,
        None,
        Time::ZERO,
        &traffic,
        stream,
        moments.clone(),
    ));
    let receiver = Application::Receiver(Receiver::new(&traffic, moments));
    let machines: [Box<dyn Machine>; 2] = [Box::new(client), Box::new(server)];
    let mut hosts: Vec<Host> = ids
        .into_iter()
        .zip(machines)
        .map(|(id, machine)| Host::new(id, machine))
        .collect();
    let ends = [(sender, path), (receiver, path.reversed())];
    for (host, (application, path)) in hosts.iter_mut().zip(ends) {
        let end = End {
            flow: 0,
            opens: path.local == local,
        };
        host.seat(Seat::new(end, application, None), [path], &mut world);
    }
    let [mut arrived, mut out] = [(); 2].map(|()| Box::new(Datagram::empty()));
    while let Some((now, event)) = world.next(Time::ZERO + Duration::from_secs(300), &mut arrived) {
        let (HostEvent::Arrival { host } | HostEvent::Wake { host }) = event;
        let host = &mut hosts[host.index()];
        match event {
            HostEvent::Arrival { .. } => host.arrival(now, Some(0), &mut arrived),
            HostEvent::Wake { .. } => host.wake(now).expect("traffic that runs"),
        }
        host.settle(now, &mut world, &directory, &mut out, |_, _| ())
            .expect("traffic that runs");
    }
    [client_account, server_account].map(|account| account.lock().expect("no panic").clone())
}

/// The same script over loopback.
async fn real() -> [Account; 2] {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let bind = |machine| Endpoint::with_machine(machine, &[loopback]).expect("loopback can be bound");
    let (client, client_account) = Recorder::new(config());
    let (server, server_account) = Recorder::new(config().listen(PORT, Acceptance::Any));
    let (client, server) = (bind(client), bind(server));
    let to = server.local_addr();
    let sending = async {
        let connection = connect(&client, to, PORT).await.expect("served");
        for _ in 0..FILE_BYTES / 1000 {
            connection
                .send(Bytes::from_static(&[0; 1000]))
                .await
                .expect("open");
        }
        connection.finish();
        assert_eq!(connection.recv().await, None);
        assert_eq!(connection.closed().await, CloseReason::Finished);
    };
    let receiving = async {
        let connection = server.accept().await.expect("running");
        while connection.recv().await.is_some() {}
        connection.finish();
        assert_eq!(connection.closed().await, CloseReason::Finished);
    };
    let both = async { tokio::join!(sending, receiving) };
    tokio::time::timeout(std::time::Duration::from_secs(60), both)
        .await
        .expect("within a minute");
    [client_account, server_account].map(|account| account.lock().expect("no panic").clone())
}

#[tokio::test]
async fn both_drivers_tell_their_applications_the_same() {
    let (simulated, real) = (simulated(), real().await);
    assert_eq!(simulated[1].read_bytes as u64, FILE_BYTES);
    assert_eq!(simulated[0].events.first().map(String::as_str), Some("connected"));
    assert_eq!(
        simulated[1].events.last().map(String::as_str),
        Some("closed: finished")
    );
    assert_eq!(real, simulated);
}

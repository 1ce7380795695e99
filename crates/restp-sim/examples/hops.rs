//! Measures the network alone: nanoseconds per hop in a dumbbell with hosts that only answer.
//!
//! `cargo run --release -p restp-sim --example hops [flows [window [packets]]]`. Each source keeps `window` packets of
//! 1500 bytes on their way, each sink answers every second packet with 52 bytes, and every host moves its timer with
//! every packet, as a transport does.

use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::{DirectionSpec, HostEvent, HostId, QueueLimit, World, topology::dumbbell};

const RETRANSMISSION: Duration = Duration::from_millis(1000);
const DELAYED_ACK: Duration = Duration::from_millis(200);

struct Peer {
    other: HostId,
    is_source: bool,
    received: u64,
}

struct Run {
    world: World,
    peers: Vec<Peer>,
    payload: Bytes,
    datagram: Box<Datagram>,
}

impl Run {
    fn new(flows: usize) -> Self {
        let mbps = |n: u64| Rate::from_bps(n * 1_000_000);
        // Large queues: the hosts retransmit nothing, so a loss would end the run early.
        let (access_rate, rate) = if flows > 8 { (1000, 1000) } else { (100, 10) };
        let access = DirectionSpec::new(
            mbps(access_rate),
            Duration::from_millis(1),
            QueueLimit::Packets(100_000),
        );
        let bottleneck =
            DirectionSpec::new(mbps(rate), Duration::from_millis(8), QueueLimit::Packets(100_000));
        let mut world = World::new(&dumbbell(flows, &access, &bottleneck), 1).expect("a network");
        let mut peers = Vec::new();
        for flow in 1..=flows {
            let [source, sink] = ["source", "sink"].map(|kind| {
                let node = world
                    .node(&format!("{kind}{flow}"))
                    .expect("a node of the dumbbell");
                world.attach(node)
            });
            peers.push(Peer {
                other: sink,
                is_source: true,
                received: 0,
            });
            peers.push(Peer {
                other: source,
                is_source: false,
                received: 0,
            });
        }
        Run {
            world,
            peers,
            payload: Bytes::from_static(&[0; 1448]),
            datagram: Box::new(Datagram::empty()),
        }
    }

    fn start(&mut self, window: usize, hosts: &[HostId]) {
        for (index, &host) in hosts.iter().enumerate().filter(|(index, _)| index % 2 == 0) {
            for _ in 0..window {
                self.send_data(Time::ZERO, host, self.peers[index].other);
            }
        }
    }

    fn send_data(&mut self, now: Time, from: HostId, to: HostId) {
        self.datagram.head.clear();
        self.datagram.head.extend_from_slice(&[0; 32]);
        self.datagram.body = self.payload.clone();
        self.world.send(now, from, to, 1500, &mut self.datagram);
        self.world.wake_at(from, now + RETRANSMISSION);
    }

    fn arrival(&mut self, now: Time, host: HostId, index: usize) {
        let peer = &mut self.peers[index];
        peer.received += 1;
        let (other, answer) = (peer.other, peer.received.is_multiple_of(2));
        if peer.is_source {
            self.send_data(now, host, other);
            self.send_data(now, host, other);
        } else if answer {
            self.datagram.head.clear();
            self.datagram.head.extend_from_slice(&[0; 32]);
            self.datagram.body = Bytes::new();
            self.world.send(now, host, other, 52, &mut self.datagram);
            self.world.cancel_wake(host);
        } else {
            self.world.wake_at(host, now + DELAYED_ACK);
        }
    }

    /// What a hop costs until `events` have happened.
    #[expect(
        clippy::disallowed_methods,
        reason = "a measurement reads the clock; nothing simulated does"
    )]
    fn nanos_per_hop(&mut self, events: u64) -> f64 {
        let (before, start) = (self.world.events(), std::time::Instant::now());
        self.go(events);
        start.elapsed().as_nanos() as f64 / (self.world.events() - before) as f64
    }

    fn go(&mut self, events: u64) {
        let mut arrived = Box::new(Datagram::empty());
        while self.world.events() < events {
            match self.world.next(Time::MAX, &mut arrived) {
                Some((now, HostEvent::Arrival { host })) => self.arrival(now, host, host.index()),
                Some((_, HostEvent::Wake { .. })) => {}
                None => break,
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<u64>().expect("a number"));
    let flows = arguments.next().unwrap_or(2) as usize;
    let window = arguments.next().unwrap_or(30) as usize;
    let events = arguments.next().unwrap_or(10_000_000) * 3;
    let mut run = Run::new(flows);
    let hosts: Vec<HostId> = run
        .peers
        .chunks(2)
        .flat_map(|pair| [pair[1].other, pair[0].other])
        .collect();
    run.start(window, &hosts);
    run.go(events / 10);
    // Many short rounds: on a shared machine some of them contain someone else's work.
    let mut rounds: Vec<f64> = (1..=1000)
        .map(|round| run.nanos_per_hop(events / 10 + events / 1000 * round))
        .collect();
    rounds.sort_by(f64::total_cmp);
    let totals = run.world.totals();
    #[expect(clippy::print_stdout, reason = "the result")]
    {
        println!(
            "{flows} flows, {} packets delivered, {} in flight: {:.1} ns per hop, hosts included (fastest {:.1})",
            totals.delivered, totals.in_flight, rounds[500], rounds[0]
        );
    }
}

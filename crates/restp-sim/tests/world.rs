//! The network as its callers see it: times, rates, faults, order, and the laws that hold whatever the network is.

use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::topology::point_to_point;
use restp_sim::*;

const MBPS_10: Rate = Rate::from_bps(10_000_000);

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_micros(n)
}

/// A link of 10 Mbit/s and 5 ms with room for ten packets: 1250 bytes take 1 ms.
fn plain() -> DirectionSpec {
    DirectionSpec::new(MBPS_10, Duration::from_millis(5), QueueLimit::Packets(10))
}

struct Pair {
    world: World,
    source: HostId,
    sink: HostId,
}

impl Pair {
    fn new(direction: DirectionSpec) -> Self {
        let mut world = World::new(&point_to_point(&direction), 1).expect("a network");
        let [source, sink] = ["source", "sink"].map(|name| {
            let node = world.node(name).expect("a node");
            world.attach(node)
        });
        Pair { world, source, sink }
    }

    fn send(&mut self, now: Time, tag: u8) {
        let mut datagram = Datagram {
            body: Bytes::from(vec![tag; 1200]),
            ..Datagram::empty()
        };
        datagram.ecn = Ecn::Ect0;
        self.world.send(now, self.source, self.sink, 1250, &mut datagram);
    }

    /// Everything that arrives until `until`: when, first byte, mark.
    fn arrivals(&mut self, until: Time) -> Vec<(Time, u8, Ecn)> {
        let mut arrived = Datagram::empty();
        let mut all = Vec::new();
        while let Some((at, happening)) = self.world.next(until, &mut arrived) {
            assert_eq!(happening, Happening::Arrival { host: self.sink });
            all.push((at, arrived.body[0], arrived.ecn));
        }
        all
    }

    fn forward(&self) -> Counters {
        self.world.link_stats()[0].counters
    }
}

#[test]
fn a_packet_takes_its_transmission_time_and_the_delay() {
    let mut pair = Pair::new(plain());
    pair.send(ms(1), 7);
    assert_eq!(pair.arrivals(Time::MAX), [(ms(7), 7, Ecn::Ect0)]);
    assert_eq!(pair.world.now(), ms(7));
}

#[test]
fn an_overloaded_line_delivers_exactly_its_rate() {
    let mut pair = Pair::new(plain());
    // 15 Mbit/s offered for ten seconds, of which 10 Mbit/s fit.
    let mut delivered = 0;
    for n in 0..15_000 {
        let now = us(n * 2000 / 3);
        delivered += pair.arrivals(now).len();
        pair.send(now, 0);
    }
    delivered += pair.arrivals(ms(10_005)).len();
    assert_eq!(delivered, 10_000, "1250 bytes per millisecond");
    let counters = pair.forward();
    assert_eq!(
        counters.busy,
        Duration::from_millis(10_005),
        "busy from the first packet on"
    );
    assert_eq!(counters.largest_queue_packets, 10);
    assert_eq!(counters.packets, 15_000);
    assert_eq!(
        counters.dropped_queue,
        15_000 - 10_000 - pair.world.totals().in_flight
    );
}

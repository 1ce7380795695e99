//! Boxes on the way: what they are shown, and what goes on.

use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::{DirectionSpec, HostEvent, LinkSpec, QueueLimit, World};

/// A link of 10 Mbit/s and 5 ms.
fn plain() -> DirectionSpec {
    let rate = Rate::from_bps(10_000_000);
    DirectionSpec::new(rate, Duration::from_millis(5), QueueLimit::Packets(10))
}

/// A tap sees what passes its node once, not what is for the node or comes from it, and what it keeps arrives nowhere else.
#[test]
fn a_tap_is_shown_what_passes_and_says_what_goes_on() {
    let links = [("a", ["source", "router"]), ("b", ["router", "sink"])]
        .map(|(name, between)| LinkSpec::symmetric(name, between, plain()));
    let mut world = World::new(&links, 1).expect("a network");
    let at = |world: &World, name| world.node(name).expect("a node");
    let [source, sink, beside] = ["source", "sink", "router"].map(|name| {
        let node = at(&world, name);
        world.attach(node)
    });
    let router = at(&world, "router");
    let tap = world.tap(router);
    let packet = |tag: u8| {
        Box::new(Datagram {
            body: Bytes::from(vec![tag; 1200]),
            ..Datagram::empty()
        })
    };
    for tag in [1, 2, 3] {
        world.send(Time::ZERO, source, sink, 1250, &mut packet(tag));
    }
    world.send(Time::ZERO, source, beside, 1250, &mut packet(4));
    world.send(Time::ZERO, tap, sink, 1250, &mut packet(5));
    let mut arrived = Box::new(Datagram::empty());
    let mut seen = Vec::new();
    while let Some((now, HostEvent::Arrival { host })) = world.next(Time::MAX, &mut arrived) {
        seen.push((host, arrived.body[0]));
        if host == tap && arrived.body[0] != 2 {
            world.pass_on(now, &mut arrived);
            world.pass_on(now, &mut arrived); // there is no second one
        }
    }
    let at_tap = [1, 2, 3].map(|tag| (tap, tag));
    for wanted in at_tap
        .into_iter()
        .chain([(beside, 4), (sink, 5), (sink, 1), (sink, 3)])
    {
        assert!(seen.contains(&wanted), "{wanted:?} of {seen:?}");
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
    let totals = world.totals();
    assert_eq!(
        (totals.sent, totals.delivered, totals.dropped, totals.in_flight),
        (5, 5, 0, 0)
    );
}

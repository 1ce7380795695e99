//! Every order of events of a short set-up and a short release ([`orders`]). From each of these states time and a healed
//! network must bring both ends to rest: data arrived once, both ends closed in order, nothing half open is left, and both
//! had agreed on one composition (ResTP §3.5.5, §3.5.6).

use crate::common::{PORT, config};
use crate::orders::{World, explore};
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_proto::wire::Services;
use restp_proto::{Acceptance, Endpoint};

type Plain = World<Endpoint>;

fn world(preset: &str, set: &[(&str, &str)]) -> Plain {
    let config = config(preset, set);
    let ends = [
        Endpoint::new(config.clone()),
        Endpoint::new(config.listen(PORT, Acceptance::Any)),
    ];
    let [local, remote] = ["10.0.0.1:0", "10.0.0.2:0"].map(|address| address.parse().expect("an address"));
    let path = PathAddress { local, remote };
    World::new(Time::ZERO, ends, path, |end, flow| {
        end.composition(flow).map(|agreed| Services::of(agreed))
    })
}

/// The client has been here before, and begins to speak beside its SYN.
fn warm(preset: &str, set: &[(&str, &str)]) -> Plain {
    let mut world = world(preset, set).open(false);
    world.settle();
    let cookie = world.ends[0].cookies(world.now).next().expect("given");
    let mut client = Endpoint::new(config(preset, set));
    client.keep_cookie(world.now, cookie);
    world.come_again(client);
    world.open(true)
}

fn broken(world: &mut Plain) -> Option<&'static str> {
    let left = world.ends.iter().any(|end| end.connections() > 0);
    world.broken().or(left.then_some("nothing is left"))
}

const SCHEMES: [(&str, &[(&str, &str)]); 3] = [
    ("default", &[("paths", "single")]),
    ("3wh-arq", &[]),
    ("opt-arq", &[]),
];

#[test]
fn every_short_story_of_a_set_up_ends_well() {
    for (preset, set) in SCHEMES {
        let ends = explore(&|| world(preset, set).open(false), 5, &broken);
        assert!(ends > 500, "{preset}: only {ends}");
        println!("{preset}: {ends} stories of a set-up");
    }
}

#[test]
fn every_short_story_of_data_beside_the_syn_ends_well() {
    let ends = explore(&|| warm("opt-arq", &[]), 5, &broken);
    assert!(ends > 500, "only {ends}");
    println!("{ends} stories of early data");
}

#[test]
fn every_short_story_of_a_release_ends_well() {
    for (preset, set) in SCHEMES {
        let begin = || {
            // Established and all said, before anybody ends.
            let mut world = world(preset, set);
            world.ending = false;
            let mut world = world.open(false);
            world.hear_all();
            world.finish();
            world
        };
        let ends = explore(&begin, 5, &broken);
        assert!(ends > 500, "{preset}: only {ends}");
        println!("{preset}: {ends} stories of a release");
    }
}

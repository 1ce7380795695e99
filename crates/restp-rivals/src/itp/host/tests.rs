//! What a step of a host with many flows looks at.

use super::*;
use crate::itp::wire::{Header, Kind, Pointer};

fn path(consumer: u32) -> PathAddress {
    let [_, x, y, z] = (consumer + 2).to_be_bytes();
    PathAddress {
        local: ([10, 0, 0, 1], 0).into(),
        remote: ([10, x, y, z], 0).into(),
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn host() -> Itp {
    Itp::new(ItpConfig {
        listen: Some(9),
        parameters: ItpParameters::default(),
    })
}

fn drain(host: &mut Itp, now: Time) -> Vec<Datagram> {
    let mut out = Datagram::empty();
    let mut all = Vec::new();
    while host.poll_transmit(now, &mut out) {
        all.push(out.clone());
    }
    all
}

/// A message of consumer number `consumer`, from its port 9.
fn arrives(host: &mut Itp, now: Time, consumer: u32, kind: Kind, pointer: Pointer) {
    let header = Header {
        kind,
        flags: 0,
        pointer,
    };
    let ports = (9, 49_152 + consumer as u16);
    let mut datagram = packet::datagram(path(consumer).reversed(), ports, &header, Bytes::new());
    datagram.path = datagram.path.reversed();
    host.handle(now, Input::Datagram(&mut datagram));
}

/// 500 objects wait for their consumers; what one of these does, and what time does, is looked at in one flow.
#[test]
fn a_step_looks_at_the_flows_that_it_concerns_and_at_no_others() {
    let mut host = host();
    for consumer in 0..500 {
        let flow = host.open(at(0), path(consumer), 9).expect("a free port");
        host.write(at(0), flow, vec![7; 5000].into()).expect("room");
        host.finish(at(0), flow);
    }
    assert_eq!(host.flows.busy(), 500);
    assert_eq!(drain(&mut host, at(0)).len(), 500, "a manifest for each");
    assert_eq!(host.flows.busy(), 0);
    let Some(Role::Serving { object, .. }) = host.flows.get(FlowId(321)).map(|flow| &flow.role) else {
        panic!("it is served")
    };
    let pointer = Pointer {
        object: *object,
        ..Pointer::default()
    };
    arrives(&mut host, at(40), 321, Kind::Interest(None), pointer);
    assert_eq!(host.flows.busy(), 1);
    assert_eq!(drain(&mut host, at(40)).len(), 1);
    assert_eq!(host.flows.busy(), 0);
    let deadline = host.next_deadline().expect("manifests leave again");
    assert_eq!(deadline, (at(1000), Wakeup::Retransmission));
    host.handle(at(1000), Input::Deadline);
    assert_eq!(
        drain(&mut host, at(1000)).len(),
        499,
        "all but the one that came through"
    );
    assert_eq!(host.next_deadline().map(|(at, _)| at), Some(at(3000)));
}

#[test]
fn every_port_is_used_once_and_again_when_its_flow_is_forgotten() {
    let mut host = host();
    let peer = |flow: u32| path(flow % 7);
    let mut ports = std::collections::BTreeSet::new();
    for flow in 0..16_384 {
        let id = host.open(at(0), peer(flow), 9).expect("a free port");
        ports.extend(host.flows.get(id).map(|flow| flow.local_port));
    }
    assert_eq!(ports.len(), 16_384);
    assert!(matches!(host.open(at(0), peer(0), 9), Err(OpenError::NoPort(_))));
    host.release(at(0), FlowId(77));
    let again = host.open(at(0), peer(0), 9).expect("one is free");
    assert_eq!(
        host.flows.get(again).map(|flow| flow.local_port),
        Some(49_152 + 77)
    );
}

/// Each is answered with a manifest, and nobody has shown that he is where the requests say.
#[test]
fn requests_of_a_source_that_takes_nothing_are_bounded() {
    let mut host = host();
    for number in 1..=200 {
        let pointer = Pointer {
            object: number,
            ..Pointer::default()
        };
        let header = Header {
            kind: Kind::Request,
            flags: 0,
            pointer,
        };
        let mut datagram = packet::datagram(path(3).reversed(), (5000, 9), &header, Bytes::from_static(b"?"));
        datagram.path = datagram.path.reversed();
        host.handle(at(1), Input::Datagram(&mut datagram));
    }
    assert_eq!((host.held(), host.dropped_datagrams()), (64, 136));
}

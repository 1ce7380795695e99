//! Very many packets from very many addresses.

use crate::common::*;
use restp_base::flow::{CloseReason, Flow, OpenError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::Endpoint;
use restp_proto::wire::Flags;
use std::net::{Ipv4Addr, SocketAddr};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Gives `bytes` to `end` as if `address` had sent them.
fn from(end: &mut Endpoint, now: Time, address: u32, bytes: &[u8]) {
    let path = PathAddress {
        local: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 2), 0)),
        remote: SocketAddr::from((Ipv4Addr::from(address), 0)),
    };
    end.handle(now, Input::Datagram(&mut contiguous(path, bytes.to_vec())));
}

fn drain(end: &mut Endpoint, now: Time) -> usize {
    let mut out = Datagram::empty();
    std::iter::from_fn(|| end.poll_transmit(now, &mut out).then_some(())).count()
}

#[test]
fn a_flood_of_requests_leaves_room_and_memory_as_they_were() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flows = pair.connect();
    let syn = pair.log[0].bytes();
    for address in 0..100_000 {
        from(&mut pair.ends[1], pair.now, 0x0B00_0000 + address, &syn);
        if address % 100 == 0 {
            drain(&mut pair.ends[1], pair.now);
        }
    }
    assert_eq!(pair.ends[1].connections(), 1 + 1024);
    assert_eq!(pair.ends[1].endpoint_stats().overflowed, 100_000 - 1024);
    assert!(
        pair.transfer(0, flows, &noise(100_000), secs(5)),
        "the established one is unharmed"
    );
    // Nobody answers: every half of a connection goes, and nobody is told of what never began.
    pair.rule = Box::new(|seen| {
        if seen.header.flags.has(Flags::SYN) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.run_for(secs(200));
    assert_eq!(pair.ends[1].connections(), 1);
    assert_eq!(pair.closed(1), None);
    pair.rule = Box::new(|_| Verdict::Pass);
    let again = pair.open();
    pair.run_for(secs(1));
    assert!(
        pair.events[0].contains(&Event::Connected(again)),
        "and there is room again"
    );
}

#[test]
fn requests_taken_back_at_once_leave_nothing() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = silent(1);
    for _ in 0..50 {
        pair.open();
        pair.run_for(Duration::from_millis(30));
        pair.forge(0, b"", |header| {
            header.flags = Flags::RST | Flags::ACK;
            header.acknowledgement = Some(1);
        });
    }
    assert_eq!((pair.ends[1].connections(), pair.events[1].len()), (0, 0));
}

#[test]
fn datagrams_from_everywhere_fill_a_bounded_table_that_empties_itself() {
    let mut config = config("unrel", &[]).listen(PORT, restp_proto::Acceptance::Any);
    config.max_connections = 500;
    let mut pair = Pair::of(crate::common::config("unrel", &[]), config);
    let flow = pair.open();
    pair.write(0, flow, b"ours");
    pair.run_for(Duration::from_millis(50));
    let datagram = pair.log[0].bytes();
    for address in 0..20_000 {
        from(&mut pair.ends[1], pair.now, 0x0B00_0000 + address, &datagram);
    }
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.ends[1].connections(), 500);
    assert_eq!(pair.ends[1].endpoint_stats().overflowed, 20_000 - 499);
    pair.write(0, flow, b"still ours");
    pair.run_for(secs(1));
    let ours = pair.accepted().unwrap();
    assert_eq!(pair.read_all(1, ours), [&b"ours"[..], b"still ours"]);
    pair.run_for(secs(100));
    let silent = |event: &Event| match event {
        Event::Closed(flow, CloseReason::TimedOut(_)) => Some(*flow),
        _ => None,
    };
    let closed: Vec<_> = pair.events[1].iter().filter_map(silent).collect();
    assert_eq!(closed.len(), 500, "silent ones age out");
    for flow in closed {
        pair.ends[1].release(pair.now, flow);
    }
    pair.run_for(secs(1));
    assert_eq!(pair.ends[1].connections(), 0);
}

#[test]
fn refusals_are_bounded_and_resets_never_answered() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.connect();
    let mut stray = pair.log[2].header.clone();
    stray.source ^= 1;
    let bytes = |flags: Flags| {
        let mut header = stray.clone();
        header.flags = flags;
        let mut head = restp_base::machine::Head::new();
        header.emit(b"", &mut head).unwrap();
        head.to_vec()
    };
    let (acknowledgement, reset) = (bytes(Flags::ACK), bytes(Flags::RST | Flags::ACK));
    for address in 0..10_000 {
        from(&mut pair.ends[1], pair.now, 0x0B00_0000 + address, &reset);
    }
    assert_eq!(drain(&mut pair.ends[1], pair.now), 0);
    for address in 0..10_000 {
        from(
            &mut pair.ends[1],
            pair.now,
            0x0B00_0000 + address,
            &acknowledgement,
        );
    }
    assert_eq!(drain(&mut pair.ends[1], pair.now), 64);
    assert_eq!(pair.ends[1].endpoint_stats().overflowed, 10_000 - 64);
}

#[test]
fn seventy_thousand_openings_run_out_of_ports_and_then_of_room_with_a_reason() {
    let mut end = Endpoint::new(config("3wh-arq", &[]));
    let path = |host: u32| PathAddress {
        local: "10.0.0.1:0".parse().unwrap(),
        remote: SocketAddr::from((Ipv4Addr::from(0x0B00_0000 + host), 0)),
    };
    let mut opened = 0;
    for host in 0..5 {
        let refused = loop {
            match end.open(Time::ZERO, path(host), PORT) {
                Ok(_) => opened += 1,
                Err(refused) => break refused,
            }
        };
        match host {
            0..=2 => assert_eq!(refused, OpenError::NoPort(path(host).remote)),
            _ => assert!(
                refused.to_string().contains("65536"),
                "the table is full: {refused}"
            ),
        }
        assert_eq!(opened, 16_384 * (host + 1).min(4));
    }
}

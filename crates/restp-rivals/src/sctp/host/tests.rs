use super::*;
use std::net::SocketAddr;

const PORT: u16 = 9;

/// What either host says reaches the other at once.
fn settle(hosts: &mut [Sctp; 2], now: Time) {
    let mut is_quiet = false;
    while !is_quiet {
        is_quiet = true;
        for from in 0..2 {
            let mut out = Datagram::empty();
            while hosts[from].poll_transmit(now, &mut out) {
                is_quiet = false;
                out.path = out.path.reversed();
                hosts[1 - from].handle(now, Input::Datagram(&mut out));
            }
        }
    }
}

#[test]
fn of_what_has_ended_and_was_released_nothing_is_kept() {
    let host = |listen| {
        Sctp::new(SctpConfig {
            listen,
            ..SctpConfig::new(SctpParameters::default())
        })
    };
    let mut hosts = [host(None), host(Some(PORT))];
    let at = |host| SocketAddr::from(([10, 0, 0, host], 0));
    let path = PathAddress {
        local: at(1),
        remote: at(2),
    };
    for round in 0..3 {
        let now = Time::from_nanos(round * 1_000_000_000);
        let flow = hosts[0].open(now, path, PORT).expect("a free port");
        settle(&mut hosts, now);
        assert_eq!((hosts[1].by_path.len(), hosts[1].by_tag.len()), (1, 1));
        hosts[0].finish(now, flow);
        settle(&mut hosts, now);
        hosts[0].release(now, flow);
        while let Some(event) = hosts[1].poll_event() {
            if let Event::Accepted(accepted) = event {
                hosts[1].release(now, accepted);
            }
        }
        settle(&mut hosts, now);
        for host in &hosts {
            assert_eq!(
                (host.slots.len(), host.by_path.len(), host.by_tag.len()),
                (0, 0, 0)
            );
            assert!(host.wakes.first().is_none() && host.turns.is_empty());
        }
    }
}

/// A peer that sends only where it was told of would else use one path.
#[test]
fn init_ack_names_the_addresses_of_a_host_that_knows_them() {
    let at = |host| SocketAddr::from(([10, 0, 0, host], 0));
    let mut server = Sctp::new(SctpConfig {
        listen: Some(PORT),
        addresses: vec![at(2).ip(), at(3).ip()],
        ..SctpConfig::new(SctpParameters::default())
    });
    let mut client = Sctp::new(SctpConfig::new(SctpParameters::default()));
    let path = PathAddress {
        local: at(1),
        remote: at(2),
    };
    client.open(Time::ZERO, path, PORT).expect("a free port");
    let mut out = Datagram::empty();
    assert!(client.poll_transmit(Time::ZERO, &mut out));
    out.path = out.path.reversed();
    server.handle(Time::ZERO, Input::Datagram(&mut out));
    assert!(server.poll_transmit(Time::ZERO, &mut out));
    match &Packet::parse(&mut out).expect("a packet").chunks[..] {
        [Chunk::InitAck(answer)] => assert_eq!(answer.addresses[..], [at(3).ip()], "it came to the other"),
        other => panic!("{other:?}"),
    }
}

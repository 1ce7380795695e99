#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use super::*;

const ID: RegistrationId = [5; 16];

fn at(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

fn path() -> PathAddress {
    PathAddress {
        local: ([10, 0, 0, 1], 7070).into(),
        remote: at(1),
    }
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn said(rendezvous: &mut Rendezvous) -> Vec<(PathAddress, Message)> {
    let mut out = Datagram::empty();
    let mut said = Vec::new();
    while rendezvous.poll_transmit(&mut out) {
        said.push((out.path, Message::parse(&out.to_vec()).unwrap()));
    }
    said
}

fn registered(now: Time) -> Rendezvous {
    let mut rendezvous = Rendezvous::default();
    rendezvous.register(now, path(), ID);
    rendezvous.on_deadline(now);
    said(&mut rendezvous);
    let answer = Message::Registered {
        id: ID,
        seen: at(9),
        port: 4000,
    };
    rendezvous.on_datagram(now, path(), &answer.emit());
    rendezvous
}

#[test]
fn a_port_of_the_relay_is_spoken_to_however_many_peers_are_announced() {
    let mut rendezvous = registered(ms(0));
    for port in 1..=100 {
        let peer = Message::Peer {
            id: ID,
            at: ([198, 51, 100, 7], port).into(),
        };
        rendezvous.on_datagram(ms(1), path(), &peer.emit());
    }
    rendezvous.on_deadline(ms(1));
    assert_eq!(said(&mut rendezvous).len(), MOST_PEERS);
    let open = Message::Open { id: ID, port: 5000 };
    rendezvous.on_datagram(ms(2), path(), &open.emit());
    assert_eq!(
        said(&mut rendezvous),
        [(
            PathAddress {
                remote: at(5000),
                ..path()
            },
            Message::Bind { id: ID }
        )]
    );
}

#[test]
fn a_host_proves_its_address_and_is_registered_until_the_relay_falls_silent() {
    let mut rendezvous = Rendezvous::default();
    rendezvous.register(ms(0), path(), ID);
    rendezvous.on_deadline(ms(0));
    assert_eq!(
        said(&mut rendezvous),
        [(
            path(),
            Message::Register {
                id: ID,
                token: [0; 16]
            }
        )]
    );
    let prove = Message::Prove {
        id: ID,
        token: [8; 16],
    }
    .emit();
    rendezvous.on_datagram(ms(20), path(), &prove);
    rendezvous.on_datagram(ms(20), path(), &prove);
    assert_eq!(rendezvous.deadline().unwrap().0, ms(20));
    rendezvous.on_deadline(ms(20));
    assert_eq!(
        said(&mut rendezvous),
        [(
            path(),
            Message::Register {
                id: ID,
                token: [8; 16]
            }
        )]
    );
    assert_eq!(rendezvous.reached(at(1)), None);
    let answer = Message::Registered {
        id: ID,
        seen: at(9),
        port: 4000,
    }
    .emit();
    rendezvous.on_datagram(ms(40), path(), &answer);
    let reached = Reached {
        relay: at(1),
        at: at(4000),
        seen: at(9),
    };
    assert_eq!(rendezvous.reached(at(1)), Some(reached));
    assert_eq!(rendezvous.deadline().unwrap().0, ms(40) + REFRESH);
    let mut now = ms(40);
    for _ in 0..=ATTEMPTS {
        assert_eq!(rendezvous.reached(at(1)), Some(reached));
        now = rendezvous.deadline().unwrap().0;
        rendezvous.on_deadline(now);
    }
    assert_eq!(rendezvous.reached(at(1)), None, "nobody answers there");
    assert_eq!(
        said(&mut rendezvous).len(),
        1 + ATTEMPTS as usize,
        "and it goes on to ask"
    );
    rendezvous.on_datagram(now, path(), &answer);
    assert_eq!(rendezvous.reached(at(1)), Some(reached), "it has come back");
}

#[test]
fn a_relay_that_asks_for_proof_again_and_again_is_no_echo() {
    let mut rendezvous = Rendezvous::default();
    rendezvous.register(ms(0), path(), ID);
    rendezvous.on_deadline(ms(0));
    let prove = Message::Prove {
        id: ID,
        token: [8; 16],
    }
    .emit();
    for _ in 0..100 {
        rendezvous.on_datagram(ms(1), path(), &prove);
        rendezvous.on_deadline(ms(1));
    }
    assert_eq!(said(&mut rendezvous).len(), 2);
}

#[test]
fn only_the_relay_registers_and_announces() {
    let mut rendezvous = registered(ms(0));
    let elsewhere = PathAddress {
        remote: at(2),
        ..path()
    };
    let peer = Message::Peer { id: ID, at: at(77) };
    rendezvous.on_datagram(ms(1), elsewhere, &peer.emit());
    rendezvous.on_datagram(
        ms(1),
        path(),
        &Message::Peer {
            id: [6; 16],
            at: at(77),
        }
        .emit(),
    );
    rendezvous.on_datagram(ms(1), elsewhere, &Message::Full { id: ID }.emit());
    rendezvous.on_deadline(ms(1));
    assert_eq!(said(&mut rendezvous), []);
    assert!(!rendezvous.is_refused(at(1)) && rendezvous.reached(at(1)).is_some());
}

#[test]
fn a_peer_that_is_announced_is_greeted_some_times_and_peers_are_few() {
    let mut rendezvous = registered(ms(0));
    for port in 1..=100 {
        rendezvous.on_datagram(
            ms(1),
            path(),
            &Message::Peer {
                id: ID,
                at: at(port + 100),
            }
            .emit(),
        );
    }
    let mut greeted = Vec::new();
    while let Some((next, _)) = rendezvous.deadline().filter(|(next, _)| *next < ms(10_000)) {
        rendezvous.on_deadline(next);
        greeted.extend(said(&mut rendezvous));
    }
    assert_eq!(greeted.len(), MOST_PEERS * PUNCHES as usize);
    let to = |port| PathAddress {
        remote: at(port),
        ..path()
    };
    assert_eq!(greeted[0], (to(101), Message::Punch));
}

/// A translator that lets in only what its host has spoken to would keep out everybody whom the relay forwards.
#[test]
fn a_port_of_the_relay_is_spoken_to_first() {
    let mut rendezvous = registered(ms(0));
    rendezvous.on_datagram(
        ms(1),
        path(),
        &Message::Open {
            id: [6; 16],
            port: 4001,
        }
        .emit(),
    );
    rendezvous.on_datagram(ms(1), path(), &Message::Open { id: ID, port: 4002 }.emit());
    rendezvous.on_deadline(ms(1));
    let to = PathAddress {
        remote: at(4002),
        ..path()
    };
    assert_eq!(said(&mut rendezvous), [(to, Message::Bind { id: ID })]);
}

#[test]
fn a_relay_is_told_of_a_peer_that_has_proved_itself_when_the_host_answers() {
    let mut rendezvous = registered(ms(0));
    rendezvous.on_datagram(ms(1), path(), &Message::Open { id: ID, port: 4002 }.emit());
    let to = PathAddress {
        remote: at(4002),
        ..path()
    };
    let answer = Datagram {
        path: to,
        ..Datagram::empty()
    };
    rendezvous.on_sent(ms(2), &answer, || false);
    assert_eq!(said(&mut rendezvous), [], "anybody gets an answer");
    rendezvous.on_sent(ms(3), &answer, || true);
    assert_eq!(said(&mut rendezvous), [(to, Message::Keep { id: ID })]);
    rendezvous.on_sent(
        ms(4),
        &Datagram {
            path: path(),
            ..answer
        },
        || true,
    );
    assert_eq!(said(&mut rendezvous), [], "no peer of the relay");
}

#[test]
fn who_sends_through_a_relay_hears_where_the_host_is_from_nobody_else() {
    let mut rendezvous = Rendezvous::default();
    rendezvous.expect(at(4000));
    let through = PathAddress {
        remote: at(4000),
        ..path()
    };
    let said = |echo| Message::Elsewhere { echo, at: at(77) }.emit();
    rendezvous.on_datagram(ms(0), through, &said([1; 8]));
    assert_eq!(rendezvous.take_elsewhere(), None, "nothing was sent there");
    let sent = Datagram {
        path: through,
        head: Head::from_slice(&[0x80, 1, 1, 1, 1]),
        body: vec![1; 40].into(),
        ..Datagram::empty()
    };
    rendezvous.on_sent(ms(0), &sent, || false);
    rendezvous.on_datagram(ms(0), through, &said([2; 8]));
    rendezvous.on_datagram(ms(0), path(), &said([1; 8]));
    assert_eq!(rendezvous.take_elsewhere(), None, "an invention");
    let (echo, at_v6) = ([1; 8], "[2001:db8::1]:77".parse().unwrap());
    let of_ipv6 = Message::Elsewhere { echo, at: at_v6 };
    rendezvous.on_datagram(ms(0), through, &of_ipv6.emit());
    assert_eq!(rendezvous.take_elsewhere(), None, "no way leads there");
    rendezvous.on_datagram(ms(0), through, &said([1; 8]));
    rendezvous.on_datagram(ms(0), through, &said([1; 8]));
    assert_eq!(
        rendezvous.take_elsewhere(),
        Some(Elsewhere { through, at: at(77) })
    );
    assert_eq!(rendezvous.take_elsewhere(), None, "once");
}

#[test]
fn a_relay_without_room_is_asked_again_later() {
    let mut rendezvous = registered(ms(0));
    rendezvous.on_datagram(ms(1), path(), &Message::Full { id: ID }.emit());
    assert!(rendezvous.is_refused(at(1)));
    assert_eq!(rendezvous.reached(at(1)), None);
    assert_eq!(rendezvous.deadline().unwrap().0, ms(1) + REFRESH);
}

//! Laws of sealed runs.

use super::*;
use crate::chaos::seal::{Attack, Seal};
use crate::chaos::trace::{Mark, Record, Work};
use crate::chaos::{Fault, Party};
use restp_base::time::Time;
use restp_seal::packet::DataHeader;
use std::net::SocketAddr;

/// A transfer both ways under the seal, and nobody attacks.
fn sealed() -> Case {
    Case {
        seal: Some(Seal {
            pinned: true,
            keeps: true,
            awaits_proof: false,
            fast_aes: true,
            unproved_per_second: 50,
            attacks: Vec::new(),
        }),
        ..reliable()
    }
}

/// Puts something on record at the end of the first packet.
fn add(what: What) -> impl FnOnce(&mut Trace) {
    move |trace| {
        let sent = |record: &Record| matches!(record.what, What::Sent { .. });
        let place = trace.records.iter().position(sent).expect("a packet");
        let at = trace.records[place].at;
        trace.records.insert(place + 1, Record { at, what });
    }
}

/// Packet `number` of a session of the client.
fn packet(number: u64) -> Mark {
    Mark::Packet(DataHeader {
        to: [9; 8],
        early: false,
        space: 0,
        number,
    })
}

/// Puts all of them on record there, in this order.
fn add_all(records: Vec<What>) -> impl FnOnce(&mut Trace) {
    move |trace| {
        for what in records.into_iter().rev() {
            add(what)(trace);
        }
    }
}

#[test]
fn what_a_seal_may_not_do_breaks_the_law_it_is_about() {
    let strange = |to, party| What::Strange {
        to,
        party,
        request: false,
    };
    breaks("origin", &sealed(), add(strange(Side::Server, None)));
    breaks("origin", &sealed(), add(strange(Side::Client, Some(Party::Liar))));
    breaks(
        "origin",
        &sealed(),
        add(strange(Side::Server, Some(Party::Side(Side::Server)))),
    );
    let party = Some(Party::Liar);
    breaks("origin", &sealed(), |trace| {
        add(What::EndedBy { end: 0, party })(trace)
    });
    for party in [Party::Liar, Party::Impostor, Party::Side(Side::Client)] {
        breaks("identity", &sealed(), |trace| {
            add(What::Told { end: 0, party })(trace)
        });
    }
    let guest = |told, data: &'static [u8]| What::Guest {
        told,
        data: Bytes::from_static(data),
    };
    breaks(
        "identity",
        &sealed(),
        add(guest(Some(Party::Side(Side::Client)), &[])),
    );
    breaks(
        "identity",
        &sealed(),
        add(guest(Some(Party::Liar), b"of the client")),
    );
}

#[test]
fn early_data_that_is_taken_twice_is_seen() {
    breaks("early", &sealed(), |trace| {
        add(What::Early { packet: 0 })(trace);
        add(What::Early { packet: 0 })(trace);
    });
    breaks("early", &sealed(), add(What::Early { packet: 0 }));
    let restarted = |trace: &mut Trace| {
        trace.records.push(Record {
            at: Time::ZERO,
            what: What::Early { packet: 9_999 },
        });
        trace.records.push(Record {
            at: Time::ZERO,
            what: What::Restarted { side: Side::Server },
        });
        trace.records.push(Record {
            at: Time::ZERO,
            what: What::Early { packet: 9_999 },
        });
    };
    breaks("early", &sealed(), restarted);
}

/// No law is broken when they are put on record.
#[track_caller]
fn holds(records: Vec<What>) {
    let (mut trace, _) = played(&sealed(), &endpoint);
    add_all(records)(&mut trace);
    assert_eq!(judge(&sealed(), &trace), None);
}

/// A packet with this mark comes to the server from `from`.
fn came(from: SocketAddr, mark: Mark) -> What {
    What::Came {
        to: Side::Server,
        from,
        bytes: 100,
        sealed: Some(Party::Liar),
        proof: false,
        mark: Some(mark),
    }
}

/// Numbers that a seal uses twice, and packets that it opens twice; a copy that it drops, and another number are right.
#[test]
fn a_number_that_is_used_twice_is_seen() {
    let host: SocketAddr = ([10, 7, 7, 7], 7).into();
    let went = |number| What::Went {
        from: Side::Server,
        to: host,
        bytes: 50,
        reaches: Some(Party::Liar),
        mark: Some(packet(number)),
    };
    let handed_up = What::Strange {
        to: Side::Server,
        party: Some(Party::Liar),
        request: false,
    };
    let first = came(host, packet(0));
    breaks(
        "nonces",
        &sealed(),
        add_all(vec![first.clone(), went(0), went(1), went(0)]),
    );
    let copied = vec![
        first.clone(),
        handed_up.clone(),
        came(host, packet(1)),
        handed_up.clone(),
        first.clone(),
    ];
    let again = [&copied[..], &[handed_up]].concat();
    breaks("nonces", &sealed(), add_all(again));
    holds([copied, vec![went(0), went(1)]].concat());
}

/// A server tells its key only where somebody can have got a proof.
#[test]
fn a_key_that_is_told_to_nobody_is_seen() {
    let host: SocketAddr = ([10, 7, 7, 7], 7).into();
    let went = |mark, reaches| What::Went {
        from: Side::Server,
        to: host,
        bytes: 41,
        reaches,
        mark,
    };
    let asks = came(host, packet(0));
    let key = went(Some(Mark::Key), None);
    breaks("envelopes", &sealed(), add_all(vec![asks.clone(), key.clone()]));
    breaks(
        "envelopes",
        &sealed(),
        add_all(vec![asks.clone(), went(None, None), key.clone()]),
    );
    let answer = went(Some(Mark::Answer([1; 8])), Some(Party::Liar));
    holds(vec![asks, answer, key]);
}

#[test]
fn what_goes_to_addresses_of_nobody_is_seen() {
    let to: SocketAddr = ([10, 7, 7, 7], 7).into();
    let went = |from, bytes| What::Went {
        from,
        to,
        bytes,
        reaches: None,
        mark: None,
    };
    breaks("envelopes", &sealed(), add(went(Side::Server, 1)));
    breaks("envelopes", &sealed(), add(went(Side::Client, 1)));
    breaks("envelopes", &sealed(), |trace| {
        add(went(Side::Server, 301))(trace);
        let came = What::Came {
            to: Side::Server,
            from: to,
            bytes: 100,
            sealed: Some(Party::Liar),
            proof: false,
            mark: None,
        };
        add(came)(trace);
    });
}

/// A packet from elsewhere shows where its client is if its session was answered at one address; one of another session, or of
/// one that was answered at two, does not.
#[test]
fn what_goes_to_an_address_that_only_another_session_has_shown_is_seen() {
    let hosts: [SocketAddr; 3] = [1, 2, 3].map(|host| ([10, 7, 7, host], 7).into());
    let client = Some(Party::Side(Side::Client));
    let came = |to, from, bytes, mark| What::Came {
        to,
        from,
        bytes,
        sealed: client.filter(|_| matches!(mark, Some(Mark::Packet(_) | Mark::Request(_)))),
        proof: false,
        mark,
    };
    let answered = |to, bytes, name: u8| What::Went {
        from: Side::Server,
        to,
        bytes,
        reaches: client,
        mark: Some(Mark::Answer([name; 8])),
    };
    let session = Some(packet(0));
    let says = |mark| What::Went {
        from: Side::Client,
        to: hosts[2],
        bytes: 50,
        reaches: Some(Party::Side(Side::Server)),
        mark: Some(mark),
    };
    let asks = |name: u8| says(Mark::Request([name; 8]));
    // Where the first request was answered, the second, and the bytes that go to the second host then.
    let story = |of_second: u8, named: u8| {
        vec![
            asks(1),
            came(Side::Server, hosts[0], 100, Some(Mark::Request([1; 8]))),
            asks(of_second),
            came(Side::Server, hosts[1], 100, Some(Mark::Request([of_second; 8]))),
            answered(hosts[0], 100, 1),
            answered(hosts[1], 100, of_second),
            came(Side::Client, hosts[2], 100, Some(Mark::Answer([named; 8]))),
            says(packet(0)),
            came(Side::Server, hosts[2], 50, session),
            answered(hosts[1], 400, 2),
        ]
    };
    breaks("envelopes", &sealed(), add_all(story(2, 1)));
    breaks("envelopes", &sealed(), add_all(story(1, 1)));
    holds(story(2, 2));
    // The answer to another request comes as well, which shows something only if the client has not asked for it.
    let with_another = [
        vec![
            answered(hosts[0], 100, 3),
            came(Side::Client, hosts[2], 100, Some(Mark::Answer([3; 8]))),
        ],
        story(2, 2),
    ]
    .concat();
    let comes = came(Side::Server, hosts[0], 100, Some(Mark::Request([3; 8])));
    holds([vec![comes.clone()], with_another.clone()].concat());
    let asked = vec![comes, asks(3)];
    holds([asked.clone(), with_another].concat());
    // If it is the last that comes before the session is used, that is the session it has begun.
    let mut behind = story(2, 2);
    behind.insert(7, came(Side::Client, hosts[2], 100, Some(Mark::Answer([3; 8]))));
    let behind = [asked, vec![answered(hosts[0], 100, 3)], behind].concat();
    breaks("envelopes", &sealed(), add_all(behind));
    // The second one was changed on its way: nobody has the keys of its answer.
    let mut changed = story(1, 1);
    changed[3] = came(Side::Server, hosts[1], 100, None);
    changed[9] = answered(hosts[0], 400, 1);
    holds(changed);
    // It went where nobody is any more, and somebody has carried it to its client.
    let mut carried = story(2, 2);
    for what in &mut carried {
        if let What::Went { to, reaches, .. } = what
            && *to == hosts[1]
        {
            *reaches = None;
        }
    }
    holds(carried);
}

#[test]
fn work_beyond_its_bounds_is_seen() {
    type Excess = fn(&mut Work);
    let excesses: [Excess; 6] = [
        |work| work.unproved = 1_000_000,
        |work| work.computed = work.requests + 1,
        |work| work.tried = work.packets + work.requests + 1,
        |work| work.forgotten = work.resets + 1,
        |work| work.half_open = 33,
        |work| work.sessions = 97,
    ];
    for excess in excesses {
        breaks("work", &sealed(), |trace| {
            first(trace, |what| match what {
                What::Worked(work) => {
                    excess(work);
                    true
                }
                _ => false,
            })
        });
    }
}

/// A client that moves and goes on speaking is found: nobody has to break off, and no time is up.
#[test]
fn a_flow_that_ends_although_its_client_is_found_is_seen() {
    let mut case = sealed();
    case.faults = vec![Fault::Rebind { path: 0, at_ms: 40 }];
    breaks("progress", &case, |trace| trace.let_go.push(1));
    breaks("endings", &case, |trace| {
        first(trace, |what| match what {
            What::Closed { end: 1, reason } => {
                *reason = CloseReason::TimedOut(Duration::from_secs(1));
                true
            }
            _ => false,
        });
    });
}

/// Every attack acts, and none of them keeps a transfer with time from its end.
#[test]
fn attackers_attack_and_the_transfer_ends() {
    let (from, rate) = (Side::Client, 0.3);
    let replay = |elsewhere| Attack::Replay {
        from,
        rate,
        most_ms: 500,
        elsewhere,
    };
    let invent = |to| Attack::Invent {
        to,
        every_ms: 50,
        names: true,
    };
    let attacks = [
        Attack::Change { from, rate },
        Attack::Drop { from, rate },
        Attack::Delay {
            from,
            rate,
            most_ms: 300,
        },
        replay(false),
        replay(true),
        Attack::Splice { from, rate },
        invent(Side::Server),
        invent(Side::Client),
        Attack::Liar {
            every_ms: 50,
            claims: 0.5,
        },
        Attack::Impostor { rate: 1.0 },
    ];
    for attack in attacks {
        let mut case = sealed();
        let seal = case.seal.as_mut().expect("a seal");
        seal.attacks = vec![attack.clone()];
        case.faults = vec![Fault::Rebind { path: 0, at_ms: 40 }];
        let quiet = played(
            &Case {
                seal: sealed().seal,
                ..case.clone()
            },
            &endpoint,
        )
        .0;
        let (trace, violation) = played(&case, &endpoint);
        assert_eq!(violation, None, "{attack:?}");
        assert_ne!(
            trace.records.len(),
            quiet.records.len(),
            "{attack:?} does something"
        );
        let finished = |end: &usize| trace.closed(*end) == Some(&CloseReason::Finished);
        assert_eq!((0..2).filter(finished).count(), 2, "{attack:?}");
    }
}

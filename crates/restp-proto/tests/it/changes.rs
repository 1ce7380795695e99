//! Services of a running connection change (docs/adr/0007-eras.md).

use crate::common::lines::{MS, both_up, client, heal, kill, line, two_paths};
use crate::common::{Pair, Verdict, composition, noise};
use restp_base::flow::{Change, ChangeError, Flow, FlowId};
use restp_base::observe::{Changed, Why};
use restp_base::time::Duration;
use restp_proto::wire::Flags;

/// What one end may change by itself, each as it changes `default`.
const LOCAL: [&[(&str, &str)]; 8] = [
    &[],
    &[("congestion", "newreno"), ("loss", "congestion")],
    &[("congestion", "bbr"), ("loss", "outage")],
    &[("congestion", "none"), ("ecn", "off"), ("loss", "corruption")],
    &[
        ("congestion", "cubic"),
        ("pacing", "off"),
        ("ack-thinning", "off"),
    ],
    &[("recovery", "duplicate-ack"), ("loss", "congestion")],
    &[
        ("reordering", "rack"),
        ("lost-repeats", "timer"),
        ("ack-every", "1 packets"),
    ],
    &[
        ("ack", "positive+sack+repeat"),
        ("rto-floor", "300 ms"),
        ("send-buffer", "64 KiB"),
    ],
];

/// Drops every `nth` data segment of side 0.
fn lose_every(nth: u64) -> crate::common::Rule {
    let mut seen_so_far = 0;
    Box::new(move |seen| {
        let counts = seen.is_data() && seen.from == 0;
        seen_so_far += u64::from(counts);
        if counts && seen_so_far.is_multiple_of(nth) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

fn changes(pair: &mut Pair, side: usize, flow: FlowId) -> Vec<Changed> {
    let mut changes = Vec::new();
    let now = pair.now;
    assert!(pair.ends[side].take_changes(now, flow, &mut changes));
    changes
}

#[test]
fn what_one_end_decides_changes_in_the_middle_of_a_transfer_and_nothing_is_lost() {
    let data = noise(120_000);
    for from in LOCAL {
        for to in LOCAL {
            let mut set = vec![("ecn", "off")]; // so that each goes together with no congestion control
            set.extend(from);
            let mut pair = Pair::new("default", &set);
            pair.rule = lose_every(13);
            let flows = pair.connect();
            let (first, second) = data.split_at(60_000);
            pair.write(0, flows.0, first);
            pair.run_for(Duration::from_millis(35)); // what was lost is being repaired
            assert!(pair.ends[0].stats(flows.0).unwrap().in_flight_segments > 0);
            let mut set = vec![("ecn", "off")];
            set.extend(to);
            let now = pair.now;
            let change = pair.ends[0].recompose(now, flows.0, composition("default", &set));
            let expected = if from == to {
                Change::Nothing
            } else {
                Change::Local
            };
            assert_eq!(change, Ok(expected), "{from:?} to {to:?}");
            let got = pair.read_all(1, flows.1);
            let got: usize = got.iter().map(|piece| piece.len()).sum();
            assert_eq!(
                data[..got],
                *first[..got].to_vec(),
                "what arrived before is in order"
            );
            let rest = [&first[got..], second].concat();
            let arrived = transfer_rest(&mut pair, flows, &rest, second);
            assert!(arrived, "{from:?} to {to:?}");
        }
    }
}

/// `rest` arrives, of which `unsent` is still to be written.
fn transfer_rest(pair: &mut Pair, flows: (FlowId, FlowId), rest: &[u8], unsent: &[u8]) -> bool {
    let mut unsent = bytes::Bytes::copy_from_slice(unsent);
    let mut got = Vec::new();
    let deadline = pair.now + Duration::from_secs(60);
    while got.len() < rest.len() && pair.now < deadline {
        let now = pair.now;
        if !unsent.is_empty() && pair.ends[0].write(now, flows.0, unsent.clone()).is_ok() {
            unsent.clear();
        }
        pair.run_for(Duration::from_millis(5));
        for piece in pair.read_all(1, flows.1) {
            got.extend_from_slice(&piece);
        }
    }
    got == rest
}

#[test]
fn a_local_change_is_told_to_observers_and_not_to_the_peer() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    assert!(changes(&mut pair, 0, flows.0).is_empty());
    let now = pair.now;
    let set =
        [("congestion", "cubic"), ("loss", "congestion")].map(|(key, value)| (key.into(), value.into()));
    assert_eq!(pair.ends[0].reconfigure(now, flows.0, &set), Ok(Change::Local));
    let noted = changes(&mut pair, 0, flows.0);
    let words: Vec<_> = noted
        .iter()
        .map(|changed| (changed.key, &*changed.from, &*changed.to, changed.why))
        .filter(|(key, ..)| ["congestion", "loss"].contains(key))
        .collect();
    assert_eq!(
        words,
        [
            ("loss", "adaptive", "congestion", Why::Application),
            ("congestion", "adaptive", "cubic", Why::Application)
        ]
    );
    assert!(noted.iter().all(|changed| changed.at == now));
    assert!(changes(&mut pair, 0, flows.0).is_empty(), "told once");
    let before = pair.log.len();
    assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
    assert!(changes(&mut pair, 1, flows.1).is_empty());
    let services = pair.log[0].header.services;
    assert!(
        pair.log[before..]
            .iter()
            .all(|seen| seen.header.services == services)
    );
}

#[test]
fn what_cannot_change_is_refused_and_nothing_changes() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    let now = pair.now;
    let mut to = |set: &[(&str, &str)]| {
        let set: Vec<_> = set
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect();
        pair.ends[0].reconfigure(now, flows.0, &set)
    };
    let settled = to(&[("framing", "fixed"), ("congestion", "cubic")]);
    assert!(
        matches!(&settled, Err(ChangeError::Settled { key: "framing", .. })),
        "{settled:?}"
    );
    assert!(matches!(
        to(&[("congestion", "cubix")]),
        Err(ChangeError::Invalid(_))
    ));
    let broken = to(&[("pacing", "off")]);
    assert!(
        matches!(broken, Err(ChangeError::Invalid(_))),
        "the controller decides a rate"
    );
    assert!(changes(&mut pair, 0, flows.0).is_empty());
}

#[test]
fn services_change_while_a_connection_runs_and_not_before_or_after() {
    let mut pair = Pair::new("default", &[]);
    let flow = pair.open();
    let cubic = || composition("default", &[("congestion", "cubic")]);
    let now = pair.now;
    let early = pair.ends[0].recompose(now, flow, cubic());
    assert_eq!(early, Err(ChangeError::NotRunning));
    pair.run_for(Duration::from_millis(100));
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(Duration::from_millis(100));
    let now = pair.now;
    let late = pair.ends[0].recompose(now, flow, cubic());
    assert_eq!(late, Err(ChangeError::NotRunning));
    assert!(pair.log.iter().any(|seen| seen.header.flags.has(Flags::FIN)));
}

/// Both paths go on under the other controller, and one that is dialled later has it from the start.
#[test]
fn on_several_paths_each_changes() {
    let set = [
        ("paths", "spreading"),
        ("scheduling", "round-robin"),
        ("congestion", "newreno"),
    ];
    let set = [&set[..], &[("loss", "congestion")]].concat();
    let mut pair = Pair::new("default", &set);
    let flows = pair.connect();
    let now = pair.now;
    let set = [("congestion", "cubic"), ("scheduling", "fastest-rtt")];
    let set = set.map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(pair.ends[0].reconfigure(now, flows.0, &set), Ok(Change::Local));
    let names: Vec<_> = changes(&mut pair, 0, flows.0)
        .into_iter()
        .map(|changed| changed.to)
        .collect();
    assert_eq!(names[..2], ["cubic", "fastest-rtt"], "once, not for each path");
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(5)));
    let agreed = [("ack".to_string(), "positive+snack".to_string())];
    let refused = pair.ends[0].reconfigure(now, flows.0, &agreed);
    assert!(matches!(refused, Err(ChangeError::Unsupported(_))), "{refused:?}");
}

const SEVERAL: [&[(&str, &str)]; 2] = [
    &[("paths", "spreading"), ("scheduling", "fastest-rtt")],
    &[
        ("paths", "spreading"),
        ("scheduling", "fastest-rtt"),
        ("numbering", "shared"),
    ],
];

fn set(pair: &mut Pair, flow: FlowId, key: &str, value: &str) {
    let now = pair.now;
    let set = [(key.to_string(), value.to_string())];
    assert_eq!(pair.ends[0].reconfigure(now, flow, &set), Ok(Change::Local));
}

fn modes(changes: &[Changed]) -> Vec<&str> {
    let modes = changes.iter().filter(|changed| changed.key == "mode");
    modes.map(|changed| &*changed.to).collect()
}

/// Who asks the first path alone hears nothing once it has gone, or another has its place.
#[test]
fn what_the_application_changes_is_told_once_whichever_paths_there_are() {
    for several in SEVERAL {
        let (mut pair, flow, _) = two_paths("default", several);
        both_up(&mut pair);
        let (first, third) = (line(&pair, 1), line(&pair, 3));
        let told = |pair: &mut Pair| {
            let changes = changes(pair, 0, flow);
            let told = changes.iter().filter(|changed| changed.key == "congestion");
            told.map(|changed| changed.to.to_string()).collect::<Vec<_>>()
        };
        set(&mut pair, flow, "congestion", "cubic");
        let now = pair.now;
        pair.ends[0].remove_path(now, flow, first).expect("another works");
        pair.run_for(MS * 500);
        let now = pair.now;
        pair.ends[0].add_path(now, flow, third, false).expect("room");
        pair.run_for(MS * 500);
        assert_eq!(told(&mut pair), ["cubic"], "{several:?}");
        let now = pair.now;
        pair.ends[0].remove_path(now, flow, third).expect("another works");
        pair.run_for(MS * 500);
        set(&mut pair, flow, "congestion", "newreno");
        assert_eq!(told(&mut pair), ["newreno"], "{several:?}");
    }
}

#[test]
fn a_path_that_is_being_set_up_while_services_change_has_them_once_it_is_up() {
    for several in SEVERAL {
        let fixed = [several, &[("congestion", "cubic")]].concat();
        let (mut pair, flow, dead) = two_paths("default", &fixed);
        kill(&dead, 2);
        pair.run_for(MS * 200);
        set(&mut pair, flow, "congestion", "adaptive");
        heal(&dead);
        pair.run_for(Duration::from_secs(10));
        let paths = pair.ends[0].stats(flow).expect("it runs").paths;
        let adapts: Vec<bool> = paths.iter().map(|path| path.mode.is_some()).collect();
        assert_eq!(adapts, [true, true], "{several:?}");
    }
}

/// The lane of one that has ended is soon another's, which must not be heard twice.
#[test]
fn no_path_is_heard_twice() {
    for several in SEVERAL {
        let (mut pair, flow, _) = two_paths("default", several);
        let third = line(&pair, 3);
        let now = pair.now;
        pair.ends[0].add_path(now, flow, third, false).expect("room");
        pair.run_for(MS * 200);
        let accepted = pair.accepted().expect("all are up");
        for gone in [1, 2] {
            let path = line(&pair, gone);
            let now = pair.now;
            pair.ends[0].remove_path(now, flow, path).expect("another works");
            pair.run_for(MS * 500);
        }
        let fourth = line(&pair, 4);
        let now = pair.now;
        pair.ends[0].add_path(now, flow, fourth, false).expect("room");
        pair.run_for(MS * 500);
        changes(&mut pair, 0, flow);
        pair.rule = lose_every(5); // so much is congestion, whatever it is
        assert!(pair.transfer(0, (flow, accepted), &noise(1_000_000), Duration::from_secs(100)));
        let ended = changes(&mut pair, 0, flow);
        let paths = pair.ends[0].stats(flow).expect("it runs").paths;
        let left = paths
            .iter()
            .filter(|path| [client(3), client(4)].contains(&path.path.local));
        let began = left
            .filter(|path| path.mode.is_some_and(|mode| mode != "startup"))
            .count();
        assert!(began > 0, "{several:?}: {paths:?}");
        assert_eq!(modes(&ended).len(), began, "{several:?}: {ended:?}");
    }
}

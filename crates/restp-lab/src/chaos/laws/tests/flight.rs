//! The laws of windows and flights, with senders that overrun what they were told.

use super::*;

#[test]
fn a_sender_that_overruns_window_flight_or_numbers_is_seen() {
    let impatient = |window: &str, initial: &str| {
        let mut case = reliable();
        for choices in [&mut case.client, &mut case.server] {
            choices.insert("window".into(), window.into());
            choices.insert("initial-window".into(), initial.into());
        }
        case
    };
    // The machines run with wider limits than the case says.
    let law = |claimed: &Case, run: &Case| {
        let (trace, _) = played(run, &endpoint);
        judge(claimed, &trace).expect("a broken law").law
    };
    let wide = impatient("60 segments", "10 segments");
    let narrow = impatient("60 segments", "2 segments");
    assert_eq!(law(&narrow, &wide), "flight");
    breaks("numbers", &reliable(), |trace| {
        let data = |what: &What| matches!(what, What::Sent { from: Side::Client, datagram, .. } if !datagram.body.is_empty());
        let at: Vec<usize> = (0..trace.records.len())
            .filter(|index| data(&trace.records[*index].what))
            .collect();
        let mut again = trace.records[at[0]].clone();
        if let What::Sent { datagram, packet, .. } = &mut again.what {
            datagram.body = Bytes::from(vec![7; datagram.body.len()]);
            *packet = 1 << 40;
        }
        trace.in_flight += 1;
        trace.records.push(again);
    });
    breaks("window", &reliable(), |trace| {
        // The same transfer with windows that are said to be shut.
        for record in &mut trace.records {
            if let What::Sent { datagram, .. } | What::Delivered { datagram, .. } = &mut record.what {
                datagram.head[12..14].copy_from_slice(&[0, 1]);
            }
        }
    });
}

/// A bulk transfer with room for a window that grows, over `choices` beside those of a reliable flow.
fn bulk(choices: &[(&str, &str)]) -> Case {
    let mut case = reliable();
    case.client_writes = Traffic::Bulk {
        start_ms: 0,
        bytes: 400_000,
    };
    case.server_writes = Traffic::Nothing;
    case.hops[0].queue_bytes = 2_000_000;
    for own in [&mut case.client, &mut case.server] {
        own.insert("window".into(), "400 segments".into());
        for (key, value) in choices {
            own.insert((*key).into(), (*value).into());
        }
    }
    case
}

/// The law that `run` breaks when it is judged as if its machines had been told what `claimed` says.
#[track_caller]
fn judged_as(claimed: &Case, run: &Case) -> &'static str {
    let (trace, violation) = played(run, &endpoint);
    assert_eq!(violation, None, "nothing is wrong with what it was told");
    judge(claimed, &trace).expect("a broken law").law
}

#[test]
fn a_window_that_grows_faster_than_its_algorithm_is_seen() {
    let (doubles, adds) = (bulk(&[]), bulk(&[("initial-threshold", "14000 B")]));
    assert_eq!(judged_as(&adds, &doubles), "flight");
}

/// A long transfer of which the network loses what leaves between `from_ms` and `until_ms`.
fn with_outage(choices: &[(&str, &str)], [from_ms, until_ms]: [u64; 2]) -> Case {
    let mut case = bulk(choices);
    case.client_writes = Traffic::Bulk {
        start_ms: 0,
        bytes: 2_000_000, // there is more to send when the loss is noticed
    };
    case.faults = vec![crate::chaos::Fault::Outage {
        hop: 0,
        from: Side::Client,
        from_ms,
        until_ms,
    }];
    case
}

/// RFC 5681 (4) leaves half, Kelly's Scalable seven eighths. Selective acknowledgements repair all of it within a round trip,
/// or the window would not be used.
#[test]
fn a_window_that_a_loss_cuts_too_little_is_seen() {
    let lossy = |congestion| {
        let choices = [
            ("congestion", congestion),
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
        ];
        with_outage(&choices, [100, 102])
    };
    assert_eq!(judged_as(&lossy("newreno"), &lossy("scalable")), "flight");
}

/// RFC 5681 §3.1: one segment. Where losses count as corruption the window stays.
#[test]
fn a_window_that_a_timeout_leaves_as_it_was_is_seen() {
    let silent = |loss| with_outage(&[("loss", loss)], [100, 300]);
    assert_eq!(judged_as(&silent("congestion"), &silent("corruption")), "flight");
}

/// Caini, Firrincieli 2004: on a path of 10 ms a reference of 25 ms makes Hybla NewReno, one of 1 ms lets it grow by 2^10 − 1
/// segments for each that arrives.
#[test]
fn a_hybla_that_counts_in_other_round_trips_is_seen() {
    let hybla = |reference| bulk(&[("congestion", "hybla"), ("reference-rtt", reference)]);
    assert_eq!(judged_as(&hybla("25 ms"), &hybla("1 ms")), "flight");
}

/// TC §2.3.6: a loss leaves what the path delivers in its shortest round trip, which is 12 500 bytes here. Half of what slow start
/// has put into its queue is more.
#[test]
fn a_westwood_that_leaves_the_queue_full_after_a_loss_is_seen() {
    for westwood in ["westwood", "westwood+"] {
        let lossy = |congestion| {
            let choices = [
                ("congestion", congestion),
                ("ack", "positive+sack"),
                ("recovery", "pipe"),
            ];
            with_outage(&choices, [100, 102])
        };
        assert_eq!(
            judged_as(&lossy(westwood), &lossy("reno")),
            "flight",
            "{westwood}"
        );
    }
}

/// ResTP §3.5.9.
#[test]
fn an_open_loop_that_sends_faster_than_its_rate_is_seen() {
    let rate = |rate| bulk(&[("congestion", "rate"), ("pacing", "on"), ("rate", rate)]);
    assert_eq!(judged_as(&rate("4 Mbit/s"), &rate("5 Mbit/s")), "flight");
}

/// The trace is changed into one in which only the first segments are ever acknowledged: what the sender goes on sending
/// overruns any window, whatever model it comes from.
#[test]
fn a_window_that_grows_without_acknowledgements_is_seen_with_every_kind_of_controller() {
    const ACKNOWLEDGED: u32 = 4;
    for choices in [
        &[("congestion", "newreno")][..],
        &[("congestion", "cubic")],
        &[("congestion", "bbr"), ("ack", "positive+sack"), ("pacing", "on")],
    ] {
        breaks("flight", &bulk(choices), |trace| {
            let mut first = None;
            rewrite(trace, Side::Server, |header| {
                let number = header.acknowledgement.expect("an acknowledgement");
                let first = *first.get_or_insert(number);
                let acknowledged = number.wrapping_sub(first).min(ACKNOWLEDGED);
                header.acknowledgement = Some(first.wrapping_add(acknowledged));
            });
        });
    }
}

//! Eras (docs/adr/0007-eras.md): what a peer, or what the network has kept of it, cannot do to the services of an end.

use crate::common::{Pair, Verdict, composition};
use restp_base::flow::{Change, Flow, FlowId};
use restp_base::observe::Why;
use restp_base::time::Duration;
use restp_proto::wire::{EraMessage, EraVerb, Tail};
use restp_proto::{Acceptance, Composition, EndpointConfig};

type Set = [(&'static str, &'static str)];

fn services(set: &Set) -> Composition {
    let base = [("framing", "fixed"), ("mtu-discovery", "off")];
    composition("default", &[&base, set].concat())
}

/// A connection that was opened with `from`, and which ends may be made weaker.
fn connected(from: &Set, weaker: [bool; 2]) -> (Pair, [FlowId; 2]) {
    let config = |weaker_services| EndpointConfig {
        weaker_services,
        ..EndpointConfig::new(services(from).check().expect("valid"))
    };
    let [opener, acceptor] = weaker.map(config);
    let mut pair = Pair::of(opener, acceptor.listen(crate::common::PORT, Acceptance::Any));
    let flows = pair.connect();
    (pair, [flows.0, flows.1])
}

/// `side` asks for the services of `to`, and is answered.
fn propose(pair: &mut Pair, flows: [FlowId; 2], side: usize, to: &Set) {
    let now = pair.now;
    let change = pair.ends[side].recompose(now, flows[side], services(to));
    assert_eq!(change, Ok(Change::Agreed));
    pair.run_for(Duration::from_secs(1));
}

fn service<T>(pair: &Pair, flows: [FlowId; 2], side: usize, of: impl Fn(&Composition) -> T) -> T {
    of(pair.ends[side].composition(flows[side]).expect("it runs"))
}

#[test]
fn a_peer_weakens_nothing_unless_that_is_allowed() {
    let weaker: [&Set; 2] = [
        &[("ordering", "unordered")],
        &[("ordering", "partial"), ("reliability", "partial")],
    ];
    for to in weaker {
        for (proposer, allowed) in [(0, false), (0, true), (1, false), (1, true)] {
            let mut may = [false; 2];
            may[1 - proposer] = allowed;
            let (mut pair, flows) = connected(&[], may);
            propose(&mut pair, flows, proposer, to);
            let expected = services(if allowed { to } else { &[] });
            for side in 0..2 {
                let now = service(&pair, flows, side, |of| (of.ordering, of.reliability));
                assert_eq!(
                    now,
                    (expected.ordering, expected.reliability),
                    "{to:?}, side {side}"
                );
            }
            let mut told = Vec::new();
            let now = pair.now;
            pair.ends[proposer].take_changes(now, flows[proposer], &mut told);
            let refused = told.iter().any(|changed| changed.why == Why::Refused);
            assert_eq!(refused, !allowed, "{told:?}");
        }
    }
}

/// Stronger services need no leave. What the application has asked for last is what it relies on.
#[test]
fn a_peer_may_strengthen_and_not_take_back_what_was_asked_for() {
    let unordered: &Set = &[("ordering", "unordered")];
    for side in 0..2 {
        let (mut pair, flows) = connected(unordered, [false; 2]);
        let is_ordered = |pair: &Pair| {
            [0, 1].map(|side| service(pair, flows, side, |of| of.ordering) != services(unordered).ordering)
        };
        propose(&mut pair, flows, side, &[]);
        assert_eq!(is_ordered(&pair), [true; 2], "side {side} has asked for more");
        propose(&mut pair, flows, 1 - side, unordered);
        assert_eq!(is_ordered(&pair), [true; 2], "the other has asked for less");
        propose(&mut pair, flows, side, unordered);
        assert_eq!(is_ordered(&pair), [false; 2], "which side {side} may take back");
    }
}

/// A bare packet of the era before looks like one of the next if that has the same services: it does not say that its sender knows
/// the boundaries.
#[test]
fn a_late_acknowledgement_of_the_era_before_turns_nobody() {
    let (mut pair, flows) = connected(&[], [false; 2]);
    let mut held = 0;
    pair.rule = Box::new(move |seen| {
        let is_bare = seen.from == 0 && seen.payload.is_empty();
        held += u32::from(is_bare);
        if is_bare && held == 1 {
            Verdict::Late(Duration::from_secs(4))
        } else {
            Verdict::Pass
        }
    });
    pair.write(1, flows[1], b"acknowledged late");
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        pair.log
            .iter()
            .filter(|seen| seen.verdict != Verdict::Pass)
            .count(),
        1
    );
    let other: &Set = &[("ack", "positive+snack")];
    propose(&mut pair, flows, 0, other);
    let of = |set| services(set).ack.detail;
    assert_eq!(service(&pair, flows, 1, |of| of.ack.detail), of(other));
    pair.rule = Box::new(|seen| {
        let is_accept = EraMessage::parse(&seen.payload)
            .is_some_and(|message| matches!(message.verb, EraVerb::Accept { .. }));
        if seen.from == 1 && seen.header.about_eras && is_accept {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    propose(&mut pair, flows, 0, &[]);
    pair.run_for(Duration::from_secs(3)); // the acknowledgement arrives
    let both = [0, 1].map(|side| service(&pair, flows, side, |of| of.ack.detail));
    assert_eq!(both, [of(other); 2], "nobody has heard that it was accepted");
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.write(1, flows[1], b"goes on");
    pair.run_for(Duration::from_secs(60));
    let both = [0, 1].map(|side| service(&pair, flows, side, |of| of.ack.detail));
    assert_eq!(both, [of(&[]); 2]);
    assert_eq!(pair.read_all(0, flows[0]), ["acknowledged late", "goes on"]);
}

/// A boundary lies ahead of what was written so far, and nothing more is written: neither the next change nor the end waits.
#[test]
fn an_era_ends_though_nothing_more_is_written() {
    for side in 0..2 {
        let (mut pair, flows) = connected(&[], [true; 2]);
        for writer in [0, 1] {
            for _ in 0..3 {
                pair.write(writer, flows[writer], b"short");
            }
        }
        let now = pair.now;
        for to in [&[("ack", "positive+snack")][..], &[("ordering", "unordered")]] {
            let change = pair.ends[side].recompose(now, flows[side], services(to));
            assert_eq!(change, Ok(Change::Agreed));
        }
        pair.run_for(Duration::from_secs(5));
        let unordered = services(&[("ordering", "unordered")]).ordering;
        let both = [0, 1].map(|side| service(&pair, flows, side, |of| of.ordering));
        assert_eq!(both, [unordered; 2], "the second change");
        for side in [0, 1] {
            assert_eq!(pair.read_all(side, flows[side]), ["short"; 3]);
            pair.ends[side].finish(pair.now, flows[side]);
        }
        pair.run_for(Duration::from_secs(5));
        for side in [0, 1] {
            assert_eq!(pair.closed(side), Some(&restp_base::flow::CloseReason::Finished));
        }
    }
}

/// What rides on data rides on such a message, too: blocks only where they fit into a segment beside it.
#[test]
fn a_message_about_eras_is_no_larger_than_a_full_segment() {
    const SEGMENT: usize = 24;
    let (mut pair, flows) = connected(&[("ack", "positive+sack"), ("segment", "24 B")], [true; 2]);
    let mut sent = 0;
    pair.rule = Box::new(move |seen| {
        sent += u32::from(seen.from == 1 && seen.is_data());
        if seen.from == 1 && sent % 2 == 1 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    for _ in 0..9 {
        pair.write(1, flows[1], &[0; SEGMENT]);
    }
    pair.run_for(pair.delay + Duration::from_millis(1));
    propose(
        &mut pair,
        flows,
        0,
        &[("ordering", "unordered"), ("segment", "24 B")],
    );
    let blocks = |seen: &crate::common::Seen| match &seen.header.tail {
        Tail::Sack(blocks) => blocks.len(),
        _ => 0,
    };
    let (messages, others): (Vec<_>, Vec<_>) = pair.log.iter().partition(|seen| verb(seen).is_some());
    assert!(others.iter().any(|seen| blocks(seen) > 1), "there is more to say");
    assert!(messages.iter().any(|seen| blocks(seen) == 1), "what fits is said");
    assert!(
        messages
            .iter()
            .all(|seen| seen.payload.len() + 8 * blocks(seen) <= SEGMENT)
    );
}

/// Messages that were written before fill a segment, and a sum has a length beside them: they leave unencoded, what comes behind them
/// is encoded.
#[test]
fn no_encoded_packet_is_larger_than_a_segment() {
    let (mut pair, flows) = connected(&[], [true; 2]);
    let full = service(&pair, flows, 0, Composition::payload_bytes);
    for _ in 0..60 {
        pair.write(0, flows[0], &vec![1; full]);
    }
    pair.run_for(pair.delay);
    propose(&mut pair, flows, 0, &[("reliability", "harq")]);
    let most = service(&pair, flows, 0, Composition::payload_bytes);
    assert!(most < full);
    for _ in 0..60 {
        pair.write(0, flows[0], &vec![2; most]);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.read_all(1, flows[1]).len(), 120);
    let encoded = pair.log.iter().filter(|seen| seen.is_encoded());
    let sizes: Vec<usize> = encoded.map(|seen| seen.payload.len()).collect();
    assert!(
        sizes.len() >= 5 && sizes.iter().all(|bytes| *bytes <= full),
        "{sizes:?}"
    );
}

fn verb(seen: &crate::common::Seen) -> Option<(EraVerb, u32)> {
    let message = EraMessage::parse(&seen.payload).filter(|_| seen.header.about_eras)?;
    Some((message.verb, message.era))
}

/// The proposer's confirmations are lost, it goes on to the era after, and the peer still says that it accepts the one before: that
/// goes without an answer, because the proposal of the era after is one.
#[test]
fn a_stale_accept_is_answered_by_the_proposal_of_the_era_after() {
    let (mut pair, flows) = connected(&[], [true; 2]);
    let mut proposals = 0;
    pair.rule = Box::new(move |seen| match verb(seen) {
        Some((EraVerb::Confirm, 1)) => Verdict::Drop,
        Some((EraVerb::Propose { .. }, 2)) => {
            proposals += 1;
            if proposals <= 3 {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        }
        _ => Verdict::Pass,
    });
    let snack: &Set = &[("ack", "positive+snack")];
    propose(&mut pair, flows, 0, snack);
    let detail = |pair: &Pair, side| service(pair, flows, side, |of| of.ack.detail);
    let of = |set| services(set).ack.detail;
    assert_eq!(
        [detail(&pair, 0), detail(&pair, 1)],
        [of(snack), of(&[])],
        "one has turned"
    );
    propose(&mut pair, flows, 0, &[("ordering", "unordered")]);
    pair.run_for(Duration::from_secs(30));
    let said = |wanted: fn(&EraVerb) -> bool, of_era| {
        let messages = pair
            .log
            .iter()
            .enumerate()
            .filter_map(|(at, seen)| Some((at, verb(seen)?)));
        let found = messages.filter(|(_, (verb, era))| wanted(verb) && *era == of_era);
        found.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let second = said(|verb| matches!(verb, EraVerb::Propose { .. }), 2);
    let accepts = said(|verb| matches!(verb, EraVerb::Accept { .. }), 1);
    assert!(accepts.iter().any(|at| *at > second[0]), "a stale one has come");
    let unordered = services(&[("ordering", "unordered")]).ordering;
    for side in 0..2 {
        assert_eq!(
            service(&pair, flows, side, |of| of.ordering),
            unordered,
            "side {side}"
        );
    }
    for (side, &flow) in flows.iter().enumerate() {
        pair.write(side, flow, b"goes on");
    }
    pair.run_for(Duration::from_secs(1));
    for (side, &flow) in flows.iter().enumerate() {
        assert_eq!(pair.read_all(side, flow), ["goes on"]);
    }
}

/// A boundary lies no further ahead than what is written, so who writes a message now and then writes the first of the next era: it waits until
/// the peer has answered, a round trip, and no message after it waits longer.
#[test]
fn a_message_written_while_an_era_is_agreed_on_waits_a_round_trip() {
    let (mut pair, flows) = connected(&[], [true; 2]);
    pair.run_for(Duration::from_millis(500));
    let (one_way, began) = (pair.delay, pair.now);
    let change = pair.ends[0].recompose(began, flows[0], services(&[("ordering", "unordered")]));
    assert_eq!(change, Ok(Change::Agreed));
    let step = Duration::from_millis(1);
    let (mut written, mut latest) = (Vec::new(), Duration::ZERO);
    while pair.now.since(began) < Duration::from_millis(200) {
        if pair.now.since(began) < Duration::from_millis(60) {
            written.push(pair.now);
            pair.write(0, flows[0], &[written.len() as u8; 20]);
        }
        pair.run_for(step);
        for message in pair.read_all(1, flows[1]) {
            let waited = pair.now.since(written[usize::from(message[0]) - 1]);
            latest = latest.max(waited);
        }
    }
    assert_eq!(
        service(&pair, flows, 1, |of| of.ordering),
        services(&[("ordering", "unordered")]).ordering
    );
    assert!(latest > one_way + step, "the first of them waits");
    assert!(
        latest <= one_way * 3 + step * 2,
        "{latest}: proposal, answer, and its own way"
    );
}

/// A peer that asks for an era, and goes on in the old one behind its own boundary, is not taken there: what turns would throw it away.
#[test]
fn nothing_of_the_era_before_is_taken_behind_the_boundary() {
    let (mut pair, flows) = connected(&[], [false; 2]);
    pair.write(0, flows[0], b"before");
    pair.run_for(Duration::from_millis(200));
    pair.rule = Box::new(|seen| match seen.from == 1 && seen.header.about_eras {
        true => Verdict::Drop,
        false => Verdict::Pass,
    });
    propose(&mut pair, flows, 0, &[("ack", "positive+snack")]);
    let boundary = pair
        .log
        .iter()
        .find_map(|seen| match EraMessage::parse(&seen.payload)?.verb {
            EraVerb::Propose { boundary, .. } => Some(boundary),
            _ => None,
        });
    let rejected = |pair: &Pair| pair.ends[1].stats(flows[1]).expect("it runs").rejected_packets;
    let before = rejected(&pair);
    for ahead in [1, 0] {
        pair.forge(0, b"behind the boundary", |header| {
            (header.about_eras, header.sequence) = (false, boundary.map(|boundary| boundary + ahead));
        });
    }
    assert_eq!(rejected(&pair), before + 2);
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.read_all(1, flows[1]), ["before"]);
}

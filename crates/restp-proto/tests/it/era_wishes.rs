//! Eras (docs/adr/0007-eras.md): what an application wants while another change is under way, and when it comes.

use crate::common::{Pair, Seen, Verdict, composition};
use restp_base::flow::{Change, Flow, FlowId};
use restp_base::observe::{Changed, Why};
use restp_base::time::Duration;
use restp_proto::wire::EraMessage;
use restp_proto::{Acceptance, Composition, EndpointConfig};

type Set = [(&'static str, &'static str)];

const FIXED: &Set = &[("framing", "fixed"), ("mtu-discovery", "off")];
const HARQ: &Set = &[("reliability", "harq")];
const SNACK: &Set = &[("ack", "positive+snack")];
const FLOOR: &Set = &[("rto-floor", "300 ms")];
const ORDERED: &Set = &[("ordering", "ordered")];
const UNORDERED: &Set = &[("ordering", "unordered")];

fn connected(preset: &str, acceptance: Acceptance) -> (Pair, [FlowId; 2]) {
    let config = || EndpointConfig {
        weaker_services: acceptance == Acceptance::Any,
        ..EndpointConfig::new(composition(preset, FIXED).check().expect("valid"))
    };
    let acceptor = config().listen(crate::common::PORT, acceptance);
    let mut pair = Pair::of(config(), acceptor);
    let flows = pair.connect();
    (pair, [flows.0, flows.1])
}

/// Opened without order, and neither end is made weaker than it asks for.
fn unordered() -> (Pair, FlowId, FlowId) {
    let config = || {
        let wanted = composition("default", &[FIXED, UNORDERED].concat());
        EndpointConfig::new(wanted.check().expect("valid"))
    };
    let mut pair = Pair::of(config(), config().listen(crate::common::PORT, Acceptance::Any));
    let (opened, accepted) = pair.connect();
    (pair, opened, accepted)
}

fn change(pair: &mut Pair, flow: FlowId, side: usize, set: &Set) -> Change {
    let set: Vec<_> = set
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    pair.ends[side]
        .reconfigure(pair.now, flow, &set)
        .expect("it runs, and the set is valid")
}

fn of<T>(pair: &Pair, flow: FlowId, side: usize, of: impl Fn(&Composition) -> T) -> T {
    of(pair.ends[side].composition(flow).expect("it runs"))
}

fn told(pair: &mut Pair, flow: FlowId, side: usize) -> Vec<Changed> {
    let mut told = Vec::new();
    pair.ends[side].take_changes(pair.now, flow, &mut told);
    told
}

const MS: Duration = Duration::from_millis(1);

/// Whether both ends encode, and how they report.
fn assert_both(pair: &Pair, flows: [FlowId; 2], encodes: bool, detail: &Set) {
    let detail = composition("default", detail).ack.detail;
    for (side, &flow) in flows.iter().enumerate() {
        let now = of(pair, flow, side, |of| (of.reliability.encodes(), of.ack.detail));
        assert_eq!(now, (encodes, detail), "side {side}");
    }
}

/// The second was the whole composition of before with one key changed, so it took the first back.
#[test]
fn a_local_wish_keeps_the_agreed_change_before_it() {
    let (mut pair, flows) = connected("default", Acceptance::Any);
    let floor = composition("default", FLOOR).rto.floor;
    assert_eq!(change(&mut pair, flows[0], 0, HARQ), Change::Agreed);
    assert_eq!(change(&mut pair, flows[0], 0, FLOOR), Change::Agreed);
    pair.write(0, flows[0], b"through the change");
    pair.run_for(MS * 2000);
    assert_eq!(
        of(&pair, flows[0], 0, |of| (of.reliability.encodes(), of.rto.floor)),
        (true, floor)
    );
    assert!(of(&pair, flows[1], 1, |of| of.reliability.encodes()));
    assert_ne!(of(&pair, flows[1], 1, |of| of.rto.floor), floor, "local");
}

#[test]
fn a_local_wish_comes_though_the_agreed_change_before_it_is_refused() {
    let (mut pair, flows) = connected("default", Acceptance::Exact);
    change(&mut pair, flows[0], 0, HARQ);
    change(&mut pair, flows[0], 0, FLOOR);
    pair.run_for(MS * 2000);
    let floor = composition("default", FLOOR).rto.floor;
    assert_eq!(
        of(&pair, flows[0], 0, |of| (of.reliability.encodes(), of.rto.floor)),
        (false, floor)
    );
    let asked = pair
        .log
        .iter()
        .filter(|seen| seen.from == 0 && seen.header.about_eras);
    assert_eq!(asked.count(), 1, "and it is not asked again");
}

#[test]
fn a_local_wish_keeps_what_the_peer_has_brought_about() {
    let (mut pair, flows) = connected("default", Acceptance::Any);
    change(&mut pair, flows[1], 1, HARQ);
    pair.run_for(pair.delay + MS); // accepted here, and the peer does not know it yet
    assert_eq!(change(&mut pair, flows[0], 0, FLOOR), Change::Agreed);
    pair.run_for(MS * 2000);
    let floor = composition("default", FLOOR).rto.floor;
    assert_eq!(
        of(&pair, flows[0], 0, |of| (of.reliability.encodes(), of.rto.floor)),
        (true, floor)
    );
    assert!(of(&pair, flows[1], 1, |of| of.reliability.encodes()));
}

/// Wishes add up, and one may take back what is under way.
#[test]
fn of_wishes_for_one_key_the_last_counts_and_the_others_stay() {
    let (mut pair, flows) = connected("default", Acceptance::Any);
    change(&mut pair, flows[0], 0, HARQ);
    change(&mut pair, flows[0], 0, SNACK);
    change(&mut pair, flows[0], 0, FLOOR);
    change(&mut pair, flows[0], 0, &[("reliability", "arq")]);
    pair.run_for(MS * 2000);
    assert_both(&pair, flows, false, SNACK);
}

/// The peer's change overtakes what is under way, and a wish for other terms stays one, whoever gives way.
#[test]
fn a_wish_for_other_terms_comes_behind_a_change_of_the_peer() {
    for asks in [0, 1] {
        let (mut pair, flows) = connected("default", Acceptance::Any);
        change(&mut pair, flows[asks], asks, HARQ);
        change(&mut pair, flows[asks], asks, SNACK);
        change(&mut pair, flows[1 - asks], 1 - asks, UNORDERED);
        pair.run_for(MS * 3000);
        let snack = composition("default", SNACK).ack.detail;
        for (side, &flow) in flows.iter().enumerate() {
            assert_eq!(
                of(&pair, flow, side, |of| of.ack.detail),
                snack,
                "{asks} asks, side {side}"
            );
        }
    }
}

/// What is not encoded as before any more, and nothing else, let the wish come: no packet has to.
#[test]
fn a_wish_comes_without_another_packet() {
    let (mut pair, flows) = connected("default", Acceptance::Any);
    pair.run_for(MS * 500);
    change(&mut pair, flows[0], 0, HARQ);
    change(&mut pair, flows[0], 0, SNACK);
    pair.run_for(MS * 2000);
    assert_both(&pair, flows, true, SNACK);
}

/// A wish that the peer has brought about meanwhile is asked for all the same: the peer does not take it away again unasked.
#[test]
fn what_both_ask_for_at_once_both_rely_on() {
    let (mut pair, opened, accepted) = unordered();
    let flows = [opened, accepted];
    for side in [0, 1] {
        assert_eq!(change(&mut pair, flows[side], side, ORDERED), Change::Agreed);
    }
    pair.run_for(MS * 1000);
    let overtaken = told(&mut pair, accepted, 1);
    assert!(overtaken.iter().any(|changed| changed.why == Why::Overtaken));
    assert_eq!(change(&mut pair, accepted, 1, ORDERED), Change::Nothing);
    change(&mut pair, opened, 0, UNORDERED);
    pair.run_for(MS * 1000);
    let ordered = composition("default", &[]).ordering;
    for (side, flow) in flows.into_iter().enumerate() {
        assert_eq!(of(&pair, flow, side, |of| of.ordering), ordered, "side {side}");
    }
}

/// The question waited twice as long for each time it had left, of a timer that was doubled as often.
#[test]
fn a_change_that_an_outage_met_comes_soon_after_it() {
    let (mut pair, flows) = connected("cubic", Acceptance::Any);
    for number in 0..200_u32 {
        pair.write(0, flows[0], &number.to_be_bytes().repeat(100));
    }
    pair.run_for(MS);
    change(&mut pair, flows[0], 0, SNACK);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.run_for(Duration::from_secs(30));
    assert!(questions(&pair) >= 6, "twice as far apart each time, and no more");
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.write(0, flows[0], b"of the next era");
    pair.run_for(Duration::from_secs(50)); // its timer waits for 51 s by then
    let snack = composition("cubic", SNACK).ack.detail;
    for (side, &flow) in flows.iter().enumerate() {
        assert_eq!(of(&pair, flow, side, |of| of.ack.detail), snack, "side {side}");
    }
    assert_eq!(pair.read_all(1, flows[1]).len(), 201);
}

fn questions(pair: &Pair) -> usize {
    let asks = |seen: &&Seen| seen.from == 0 && EraMessage::parse(&seen.payload).is_some();
    pair.log.iter().filter(asks).count()
}

/// One packet of the peer shows that the way is there: the question is as young as on the first day.
#[test]
fn a_question_begins_again_when_the_peer_is_heard_once() {
    let (mut pair, flows) = connected("cubic", Acceptance::Any);
    change(&mut pair, flows[0], 0, SNACK);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.run_for(Duration::from_secs(30));
    pair.rule = Box::new(|seen| match seen.header.about_eras {
        true => Verdict::Drop,
        false => Verdict::Pass,
    });
    let before = questions(&pair);
    pair.write(1, flows[1], b"is heard");
    pair.run_for(Duration::from_secs(5));
    assert!(
        questions(&pair) >= before + 3,
        "{} after {before}",
        questions(&pair)
    );
}

/// Whoever is heard is asked again at once, however often the question was lost.
#[test]
fn a_question_does_not_wait_longer_while_the_peer_is_heard() {
    let (mut pair, flows) = connected("cubic", Acceptance::Any);
    pair.rule = Box::new(|seen| match seen.header.about_eras {
        true => Verdict::Drop,
        false => Verdict::Pass,
    });
    change(&mut pair, flows[0], 0, SNACK);
    for round in 0..3100 {
        if round == 3000 {
            pair.rule = Box::new(|_| Verdict::Pass);
        }
        pair.write(1, flows[1], b"is heard");
        pair.run_for(MS * 10);
        pair.read_all(0, flows[0]);
    }
    let snack = composition("cubic", SNACK).ack.detail;
    assert_eq!(of(&pair, flows[0], 0, |of| of.ack.detail), snack);
    assert!(questions(&pair) < 200, "once in a timeout");
}

/// What was overtaken is asked for again while a wish waits: the wish had kept it, so that it seemed to be under way.
#[test]
fn what_was_overtaken_can_be_asked_for_again_beside_a_wish() {
    let (mut pair, flows) = connected("default", Acceptance::Any);
    change(&mut pair, flows[1], 1, HARQ);
    change(&mut pair, flows[1], 1, FLOOR);
    change(&mut pair, flows[0], 0, SNACK);
    pair.run_for(pair.delay + MS);
    assert!(
        told(&mut pair, flows[1], 1)
            .iter()
            .any(|changed| changed.why == Why::Overtaken)
    );
    assert_eq!(change(&mut pair, flows[1], 1, HARQ), Change::Agreed);
    pair.run_for(MS * 3000);
    assert_both(&pair, flows, true, SNACK);
    let floor = composition("default", FLOOR).rto.floor;
    assert_eq!(of(&pair, flows[1], 1, |of| of.rto.floor), floor);
}

/// The application has finished when its wish could come: that comes to nothing, and is told.
#[test]
fn a_wish_that_comes_to_nothing_is_told() {
    let (mut pair, flows) = connected("default", Acceptance::Any);
    pair.write(1, flows[1], b"is missing for a while");
    pair.rule = Box::new(
        |seen| match seen.from == 1 && seen.is_data() && !seen.header.about_eras {
            true => Verdict::Drop,
            false => Verdict::Pass,
        },
    );
    change(&mut pair, flows[0], 0, HARQ);
    pair.run_for(MS * 100);
    assert_eq!(change(&mut pair, flows[0], 0, FLOOR), Change::Agreed);
    pair.ends[0].finish(pair.now, flows[0]);
    pair.run_for(MS * 100);
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(MS * 2000);
    let told = told(&mut pair, flows[0], 0);
    let refused = told.iter().find(|changed| changed.why == Why::Refused);
    assert_eq!(refused.expect("it is told").key, "rto-floor", "{told:?}");
}

/// A change of what is local relies on nothing that the peer has brought about.
#[test]
fn a_local_change_leaves_the_peer_what_it_has_brought_about() {
    let (mut pair, opened, accepted) = unordered();
    change(&mut pair, opened, 0, ORDERED);
    pair.run_for(MS * 1000);
    assert_eq!(change(&mut pair, accepted, 1, FLOOR), Change::Local);
    assert_eq!(change(&mut pair, accepted, 1, FLOOR), Change::Nothing);
    change(&mut pair, opened, 0, UNORDERED);
    pair.run_for(MS * 1000);
    let expected = composition("default", UNORDERED).ordering;
    for (side, flow) in [opened, accepted].into_iter().enumerate() {
        assert_eq!(of(&pair, flow, side, |of| of.ordering), expected, "side {side}");
    }
}

/// And one that names the order as well relies on that.
#[test]
fn a_change_that_names_what_there_is_relies_on_it() {
    let (mut pair, opened, accepted) = unordered();
    change(&mut pair, opened, 0, ORDERED);
    pair.run_for(MS * 1000);
    let both: &Set = &[("ordering", "ordered"), ("rto-floor", "300 ms")];
    assert_eq!(change(&mut pair, accepted, 1, both), Change::Local);
    change(&mut pair, opened, 0, UNORDERED);
    pair.run_for(MS * 1000);
    let refused = told(&mut pair, opened, 0);
    assert!(refused.iter().any(|changed| changed.why == Why::Refused));
}

/// An agreed change of something else relies on nothing of it either; what is asked for counts at once, though another era comes first.
#[test]
fn what_is_relied_on_is_what_was_asked_for() {
    let (mut pair, opened, accepted) = unordered();
    change(&mut pair, opened, 0, ORDERED);
    pair.run_for(MS * 1000);
    assert_eq!(change(&mut pair, accepted, 1, SNACK), Change::Agreed);
    pair.run_for(MS * 1000);
    let is_ordered = |pair: &Pair| {
        let ordered = composition("default", ORDERED).ordering;
        [(0, opened), (1, accepted)].map(|(side, flow)| of(pair, flow, side, |of| of.ordering) == ordered)
    };
    change(&mut pair, opened, 0, UNORDERED);
    pair.run_for(MS * 1000);
    assert_eq!(is_ordered(&pair), [false; 2]);

    change(&mut pair, opened, 0, ORDERED);
    pair.run_for(MS * 1000);
    change(&mut pair, accepted, 1, HARQ);
    change(&mut pair, accepted, 1, ORDERED);
    change(&mut pair, opened, 0, UNORDERED);
    pair.run_for(MS * 2000);
    assert_eq!(is_ordered(&pair), [true; 2], "one has just asked for it");
}

/// An end that has asked for more and did not get it still takes what is no less than there is.
#[test]
fn who_did_not_get_more_takes_what_there_is() {
    let (mut pair, opened, accepted) = unordered();
    pair.ends[0]
        .recompose(
            pair.now,
            opened,
            composition("default", &[FIXED, UNORDERED, SNACK].concat()),
        )
        .expect("it runs");
    change(&mut pair, accepted, 1, ORDERED); // overtaken
    pair.run_for(MS * 1000);
    assert!(
        told(&mut pair, accepted, 1)
            .iter()
            .any(|changed| changed.why == Why::Overtaken)
    );
    change(&mut pair, opened, 0, &[("ack", "positive+sack")]);
    pair.run_for(MS * 1000);
    let sack = composition("default", &[("ack", "positive+sack")]).ack.detail;
    assert_eq!(of(&pair, accepted, 1, |of| of.ack.detail), sack);
}

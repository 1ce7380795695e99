//! Once everything is whole, everything comes to an end in bounded time and is forgotten, without storms of packets
//! or needless wakes. Who has moved and says nothing more is not found, and who serves nobody does not say that it has
//! started again: where the other end waits a day for the link (ResTP §3.6), its application breaks off at the end of that time.

use super::endings::is_out_of_reach;
use super::evidence::{Evidence, Fault, Pdu};
use crate::chaos::trace::{Ending, What};
use crate::chaos::{Side, liveness, network};
use restp_base::time::{Duration, Time};
use std::collections::BTreeSet;

/// Wakes for every packet, and for every second.
const WAKES_PER_PACKET: u64 = 4;
const WAKES_PER_SECOND: u64 = 100;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let trace = evidence.trace;
    let last = trace.records.len().checked_sub(1);
    let fault = |what: String| Fault { record: last, what };
    match trace.ending {
        Ending::Quiet => {}
        Ending::TimeUp | Ending::Storm if Side::BOTH.iter().any(|side| fills_queues(evidence, *side)) => {
            return Ok(());
        }
        Ending::Storm if asks_by_its_timers(evidence) => return Ok(()),
        Ending::TimeUp => return Err(fault("something is still to happen when the time is up".into())),
        Ending::Stuck => {
            return Err(fault(
                "time does not go on: a machine never has enough of one instant".into(),
            ));
        }
        Ending::Storm => return Err(fault("more happens than so little data explains".into())),
    }
    let is_explained = |end: &usize| {
        let side = trace.ends[*end].side;
        let waits = evidence.composition(side).loss_handling.probes();
        waits && (is_out_of_reach(evidence, *end, Duration::MAX) || is_forgotten(evidence, *end))
    };
    if let Some(end) = trace.let_go.iter().find(|end| !is_explained(end)) {
        let end = trace.ends[*end];
        let what = format!(
            "conversation {} of {} has to be broken off",
            end.conversation, end.side
        );
        return Err(fault(what));
    }
    if let Some(end) = trace.remembered.first() {
        let end = trace.ends[*end];
        return Err(fault(format!(
            "{} still knows conversation {} after it was over and released",
            end.side, end.conversation
        )));
    }
    let holder = Side::BOTH.iter().zip(trace.held).find(|(_, held)| *held > 0);
    if let Some((side, held)) = holder {
        return Err(fault(format!(
            "{side} still holds {held} flows that no application knows"
        )));
    }
    let sent = trace
        .records
        .iter()
        .filter(|record| matches!(record.what, What::Sent { .. }))
        .count() as u64;
    let seconds = trace.records.last().map_or(0.0, |record| record.at.as_secs_f64()) as u64;
    let most = WAKES_PER_PACKET * sent + WAKES_PER_SECOND * (seconds + 1);
    if trace.wakeups > most {
        return Err(fault(format!(
            "{} wakes for {sent} packets in {seconds} s",
            trace.wakeups
        )));
    }
    Ok(())
}

/// Does the timer of `side` run out, at its ceiling and so without end, before a full queue lets through what it waits for? Then
/// what it retransmits keeps that queue full by itself, and what is missing finds no room in it.
fn fills_queues(evidence: &Evidence<'_>, side: Side) -> bool {
    let composition = evidence.composition(side);
    let segment = u64::from(composition.segment_bytes);
    composition.rto.ceiling < network::longest_of_all(evidence.case, segment)
}

/// Who waits for a day for the link, or bears a silence of a millisecond only, asks by its timers all day, and is answered: so many
/// questions are no storm. What it retransmits asks, too; data that are new are bounded by what was written, and are a small part
/// of what was sent.
fn asks_by_its_timers(evidence: &Evidence<'_>) -> bool {
    let trace = evidence.trace;
    let sent = trace.records.iter().filter_map(|record| match record.what {
        What::Sent { packet, from, .. } => evidence.pdu(packet).map(|pdu| (record.at, from, pdu)),
        _ => None,
    });
    let mut numbers = BTreeSet::new();
    let mut is_new = |from: Side, pdu: &Pdu| {
        !pdu.payload.is_empty() && numbers.insert((from.index(), pdu.strand, pdu.header.sequence))
    };
    let (data, questions): (Vec<_>, Vec<_>) = sent.partition(|(_, from, pdu)| is_new(*from, pdu));
    let questions: Vec<Time> = questions.into_iter().map(|(at, ..)| at).collect();
    let last = trace.records.last().map_or(Time::ZERO, |record| record.at);
    let pauses = Side::BOTH.map(|side| liveness::shortest_pause(evidence.composition(side)));
    data.len() * 10 < questions.len() && are_timed(&questions, last, evidence.case.paths() as u64, pauses)
}

/// Are there no more of these than a question of each side by each path and its answer after each of its `pauses` until `last`, and no
/// more in the last tenth of the time than twice its share?
fn are_timed(questions: &[Time], last: Time, paths: u64, pauses: [Duration; 2]) -> bool {
    let span = last.since(Time::ZERO);
    let turns = pauses.map(|pause| span.as_nanos() / pause.as_nanos().max(1));
    let most = 2 * paths * turns.into_iter().sum::<u64>();
    let late = questions.iter().filter(|at| last.since(**at) < span / 10).count();
    questions.len() as u64 <= most && late <= questions.len() / 5
}

/// Has the client started again since it asked, without a word that it has forgotten? Under the seal who serves nobody says none.
fn is_forgotten(evidence: &Evidence<'_>, of: usize) -> bool {
    let mut records = evidence.trace.records.iter().map(|record| &record.what);
    let server = evidence.case.seal.is_some() && evidence.trace.ends[of].side == Side::Server;
    let asked = evidence.trace.counterpart(of).unwrap_or(of);
    server
        && records.any(|what| matches!(what, What::Began { end } if *end == asked))
        && records.any(|what| matches!(what, What::Restarted { side: Side::Client }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn questions_by_timers_are_no_storm_and_a_war_of_acknowledgements_is_one() {
        let (pauses, last) = ([Duration::from_millis(200); 2], at(100_000));
        let every = |pause: u64| (0..100_000 / pause).map(|n| at(n * pause)).collect::<Vec<_>>();
        assert!(
            are_timed(&every(100), last, 1, pauses),
            "a question in each pause, and its answer"
        );
        assert!(!are_timed(&every(40), last, 1, pauses));
        assert!(are_timed(&every(40), last, 3, pauses), "by three paths");
        let mut war = every(1000);
        war.extend((0..500).map(|n| at(99_000 + n)));
        assert!(
            !are_timed(&war, last, 1, pauses),
            "few in all, and most of them at the end"
        );
    }
}

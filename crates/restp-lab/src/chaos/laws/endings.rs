//! Every flow ends once, finished unless a fault explains another reason; nothing is read after the end.

use super::evidence::{Evidence, Fault};
use crate::chaos::paths::at;
use crate::chaos::trace::{End, Ending, Record, Trace, What};
use crate::chaos::{Fault as CaseFault, Side, liveness};
use restp_base::flow::CloseReason;
use restp_base::time::{Duration, Time};
use restp_proto::wire::Flags;
use std::collections::BTreeSet;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let trace = evidence.trace;
    let (mut open, mut over, mut ended) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, record) in trace.records.iter().enumerate() {
        match &record.what {
            What::Began { end } => drop(open.insert(*end)),
            What::Restarted { side } => open.retain(|end: &usize| trace.ends[*end].side != *side),
            What::Closed { end, reason } => {
                let side = trace.ends[*end].side;
                open.remove(end);
                if !over.insert(*end) {
                    return Err(Fault::at(
                        index,
                        format!("{side} is told twice that its flow is over"),
                    ));
                }
                if !is_explained(evidence, *end, reason) {
                    return Err(Fault::at(
                        index,
                        format!("{side} is told \"{reason}\", which nothing explains"),
                    ));
                }
            }
            What::ReadEnd { end } => drop(ended.insert(*end)),
            What::Read { end, .. } if ended.contains(end) => {
                let side = trace.ends[*end].side;
                return Err(Fault::at(index, format!("{side} reads after the end")));
            }
            What::Unexpected { side, what } => return Err(Fault::at(index, format!("{side}: {what}"))),
            _ => {}
        }
    }
    // Whether it may go on for ever is told by the law of progress.
    match open.first().filter(|_| trace.ending == Ending::Quiet) {
        None => Ok(()),
        Some(end) => {
            let End {
                side, conversation, ..
            } = trace.ends[*end];
            let last = trace.records.len() - 1;
            Err(Fault::at(
                last,
                format!("conversation {conversation} of {side} never ended"),
            ))
        }
    }
}

/// The other end has finished, and no word of it has arrived since: the network lost what this end asked for the whole time,
/// or the answers. Nobody acknowledges the last acknowledgement (RFC 9293 §3.6), and who has finished opens no other path.
fn last_words_are_lost(evidence: &Evidence<'_>, end: usize, waited: Duration) -> bool {
    let trace = evidence.trace;
    let closed = |of: usize| {
        let is_it = |record: &Record| matches!(record.what, What::Closed { end, .. } if end == of);
        trace.records.iter().position(is_it)
    };
    let peer = trace.counterpart(end).filter(|peer| evidence.finishes(*peer));
    let (Some(finished), Some(over)) = (peer.and_then(closed), closed(end)) else {
        return false;
    };
    if finished > over {
        return false;
    }
    let End {
        side, conversation, ..
    } = trace.ends[end];
    // What refuses or breaks off a path that was never set up says nothing of what was sent.
    let words = |by: Side| {
        trace.records[..over]
            .iter()
            .enumerate()
            .filter_map(move |(index, record)| match record.what {
                What::Sent { packet, from, .. } if from == by => {
                    let pdu = evidence.pdu(packet)?;
                    let speaks =
                        pdu.header.acknowledgement.is_some() && pdu.conversation == Some(conversation);
                    speaks.then_some((index, record.at, packet, pdu))
                }
                _ => None,
            })
    };
    let answered_paths = |by: Side| -> BTreeSet<Option<usize>> {
        let sets_up_or_refuses = |flags: Flags| flags.has(Flags::RST) || flags.has(Flags::SYN);
        let answers = words(by).filter(|(.., pdu)| !sets_up_or_refuses(pdu.header.flags));
        answers.map(|(.., pdu)| pdu.strand).collect()
    };
    let said = |by: Side| -> Vec<(Time, u64)> {
        let paths = answered_paths(by);
        let since = words(by).filter(|(index, .., pdu)| *index > finished && paths.contains(&pdu.strand));
        since.map(|(_, at, packet, _)| (at, packet)).collect()
    };
    let (ours, theirs) = (said(side), said(side.other()));
    let half = trace.records[over].at - waited / 2;
    let late = |(at, _): &(Time, u64)| *at > half;
    let arrives = |(_, packet): &(Time, u64)| evidence.arrives(*packet);
    let asked = ours.iter().any(late);
    let heard = ours.iter().any(|word| late(word) && arrives(word));
    asked && (!heard || theirs.iter().any(late)) && !theirs.iter().any(arrives)
}

/// Does the case explain why a flow ended like this?
fn is_explained(evidence: &Evidence<'_>, end: usize, reason: &CloseReason) -> bool {
    let trace = evidence.trace;
    let End {
        side,
        conversation,
        again,
    } = trace.ends[end];
    let broken_off = |of: Option<usize>| {
        trace.records.iter().any(|record| match record.what {
            What::Aborted { end } => {
                trace.ends[end].conversation == conversation && of.is_none_or(|of| of == end)
            }
            _ => false,
        })
    };
    let gives_up = |side| liveness::may_give_up(evidence.case, side, evidence.composition(side));
    let reliable = evidence.composition(side).reliability.retransmits();
    match reason {
        CloseReason::Finished => true,
        // Or the seal does, where another host has got the last address of a flow whose peer has left it.
        CloseReason::Aborted => {
            broken_off(Some(end)) || evidence.case.seal.is_some() && left_alone(trace, end)
        }
        CloseReason::TimedOut(waited) if last_words_are_lost(evidence, end, *waited) => true,
        // One side gives up and says so, or says so in vain.
        CloseReason::TimedOut(_) | CloseReason::Reset | CloseReason::Refused => {
            again
                || broken_off(None)
                || is_out_of_reach(evidence, end, waited_for(reason))
                || trace.counterpart(end).is_some_and(|peer| gave_up_out_of_reach(evidence, peer))
                || trace.broken(conversation)
                || gives_up(side)
                || gives_up(side.other())
                // Without retransmissions the end of one side may be lost, and the other learns that nobody is there.
                || (!reliable && *reason == CloseReason::Reset)
        }
    }
}

/// Had the other end of `end` ended when this one did?
fn left_alone(trace: &Trace, end: usize) -> bool {
    let ends = |record: &Record| matches!(record.what, What::Closed { end: of, .. } if of == end);
    let over = trace.records.iter().position(ends);
    over.is_some_and(|over| trace.is_left_alone(end, over))
}

/// Did this end give its peer up while that was out of reach? Then it says so, perhaps when the peer has come back.
fn gave_up_out_of_reach(evidence: &Evidence<'_>, end: usize) -> bool {
    match evidence.trace.closed(end) {
        Some(CloseReason::TimedOut(waited)) => is_out_of_reach(evidence, end, *waited),
        _ => false,
    }
}

/// How long an end waited before it gave up; for ever where it did not.
fn waited_for(reason: &CloseReason) -> Duration {
    match reason {
        CloseReason::TimedOut(waited) => *waited,
        _ => Duration::MAX,
    }
}

/// Had the client's only address changed, and was nothing more heard of it? Nobody finds it before it speaks again. Where it spoke
/// after half of the time that this end `waited`, or later, nothing may have left again since: timers double.
pub fn is_out_of_reach(evidence: &Evidence<'_>, end: usize, waited: Duration) -> bool {
    let (case, trace) = (evidence.case, evidence.trace);
    if !case.may_be_out_of_reach() {
        return false;
    }
    let conversation = trace.ends[end].conversation;
    let closes = |record: &&Record| matches!(record.what, What::Closed { end: of, .. } if of == end);
    let over = trace
        .records
        .iter()
        .find(closes)
        .map_or(Time::MAX, |record| record.at);
    // What is lost is not heard, and that it knows of nothing any more says nothing of what was sent.
    let is_reset = |packet| {
        evidence
            .pdu(packet)
            .is_none_or(|pdu| pdu.header.flags.has(Flags::RST))
    };
    let speaks = |packet| evidence.arrives(packet) && !is_reset(packet);
    let words = trace.records.iter().filter_map(|record| match record.what {
        What::Sent {
            from: Side::Client,
            owner,
            packet,
            ..
        } if owner.is_some_and(|owner| owner.conversation == conversation) && speaks(packet) => {
            Some(record.at)
        }
        _ => None,
    });
    let words: Vec<Time> = words.take_while(|word| *word <= over).collect();
    case.faults.iter().any(|fault| {
        let CaseFault::Rebind { at_ms, .. } = *fault else {
            return false;
        };
        let moved = at(at_ms);
        match words.iter().find(|word| **word > moved) {
            None => moved <= over,
            Some(found) => found.since(moved.max(over - waited)) * 2 >= waited,
        }
    })
}

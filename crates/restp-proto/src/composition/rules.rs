//! What does not go together: one table, in which each rule names its reason, its source and a way out.
//!
//! ResTP §14 asks for sequence numbers beside ordering, congestion control, windows and FEC. That needs no rule:
//! the header carries numbers whenever one of these is on (OP-14).

mod hints;
mod numbers;
mod services;

use super::Composition;
use restp_services::ack::Schedule;
use restp_services::congestion::CongestionChoice;
use restp_services::connection_management::Establishment;
use restp_services::flow_control::FlowControl;
use restp_services::ordering::Ordering;
use restp_services::path_management::NumberSpace;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It contradicts itself, or the header cannot say it.
    Impossible,
    /// It would not work.
    Forbidden,
    /// It works badly: allowed with a warning.
    Discouraged,
    /// It works, and in some circumstances another choice works better: a hint.
    Recommended,
}

/// One rule.
pub struct Rule {
    /// Short name, stable.
    pub id: &'static str,
    /// What follows.
    pub verdict: Verdict,
    /// Where it comes from; `project` where it is our own.
    pub source: &'static str,
    /// The keys it is about.
    pub about: &'static [&'static str],
    /// Why.
    pub reason: &'static str,
    /// Keys and values of the nearest choice without this fault.
    pub instead: &'static [(&'static str, &'static str)],
    /// True for a composition at fault.
    pub broken: fn(&Composition) -> bool,
}

/// Every rule: services, numbers, hints.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [services::RULES, numbers::RULES, hints::RULES]
        .into_iter()
        .flatten()
}

/// True when somebody uses acknowledgements. What the header shows of the ACK module is just this.
fn needs_ack(c: &Composition) -> bool {
    c.reliability.retransmits() || controlled(c) || windowed(c)
}
fn controlled(c: &Composition) -> bool {
    !matches!(c.congestion, CongestionChoice::None { .. })
}
fn windowed(c: &Composition) -> bool {
    matches!(c.flow_control, FlowControl::Window(_))
}
fn delayed(c: &Composition) -> bool {
    matches!(c.ack.schedule, Schedule::Delayed(_))
}
fn connectionless(c: &Composition) -> bool {
    c.establishment == Establishment::Connectionless
}
fn shares_numbers(c: &Composition) -> bool {
    c.numbering == NumberSpace::Shared
}
/// Does somebody put in order what several paths bring: the association, each stream, or a reader who skips what is late?
fn orders_paths(c: &Composition) -> bool {
    match c.ordering {
        Ordering::Ordered => true,
        Ordering::Partial => c.reliability.is_partial(),
        Ordering::Unordered => c.framing.has_streams(),
    }
}
/// There is one rule of a name.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("id", &self.id)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

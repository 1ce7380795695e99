//! Services that applications change while their conversations run: some that one end decides alone, some that both have to agree on.
//! In every tenth run over one path.

use super::Side;
use super::swarm::Choices;
use restp_base::random::Stream;
use restp_proto::composition::{KEYS, Key, ValidComposition};
use serde::{Deserialize, Serialize};

/// What an application asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// Whose.
    pub side: Side,
    /// When, after its end of the conversation has begun.
    pub after_ms: u64,
    /// What is to change of the services in force; it may be refused.
    pub set: Choices,
}

/// How often applications change anything.
const CHANCE: f64 = 0.1;
/// Most wishes of a run.
const MOST: u64 = 5;

/// What both ends have to agree on. Reliability stays full, so that what is written has to be read whatever is agreed.
const AGREED: [&[(&str, &str)]; 9] = [
    &[("ack", "positive"), ("recovery", "duplicate-ack")],
    &[("ack", "positive+sack"), ("recovery", "pipe")],
    &[("ack", "positive+snack"), ("recovery", "pipe")],
    &[("ack", "positive+nak")],
    &[("reliability", "harq")],
    &[("reliability", "harq"), ("fec", "interleaved")],
    &[("reliability", "arq")],
    &[("ordering", "unordered")],
    &[("ordering", "ordered")],
];
/// What one end decides.
const LOCAL: [&str; 5] = ["congestion", "loss", "recovery", "pacing", "reordering"];

/// What the applications of a run over one path wish for.
pub fn draw(draw: &mut Stream, client: &ValidComposition, heal_ms: u64) -> Vec<Wish> {
    if !draw.chance(CHANCE) || !client.reliability.is_full() {
        return Vec::new();
    }
    let mut wishes: Vec<Wish> = (0..1 + draw.below(MOST)).map(|_| wish(draw, heal_ms)).collect();
    if draw.chance(0.3)
        && let [first, second, ..] = &mut wishes[..]
    {
        (second.side, second.after_ms) = (first.side.other(), first.after_ms); // they cross
    }
    wishes
}

fn wish(draw: &mut Stream, heal_ms: u64) -> Wish {
    let side = Side::BOTH[draw.below(2) as usize];
    let set = if draw.chance(0.7) {
        let agreed = AGREED[draw.below(AGREED.len() as u64) as usize];
        agreed
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    } else {
        let name = LOCAL[draw.below(LOCAL.len() as u64) as usize];
        let values = KEYS
            .iter()
            .find(|key| key.name == name)
            .map_or_else(Vec::new, Key::samples);
        let value = values
            .get(draw.below(values.len().max(1) as u64) as usize)
            .cloned();
        value
            .into_iter()
            .map(|value| (name.into(), value.to_string()))
            .collect()
    };
    Wish {
        side,
        after_ms: draw.below(heal_ms.min(4_000)),
        set,
    }
}

#[cfg(test)]
mod tests {
    use crate::chaos::{Case, Side};

    #[test]
    fn every_tenth_run_over_one_path_changes_services_at_both_ends() {
        let cases: Vec<_> = (0..3_000).map(Case::draw).collect();
        let changed: Vec<_> = cases.iter().filter(|case| !case.changes.is_empty()).collect();
        assert!((60..300).contains(&changed.len()), "{}", changed.len());
        for side in Side::BOTH {
            let asks = |case: &&&Case| case.changes.iter().any(|wish| wish.side == side);
            assert!(changed.iter().filter(asks).count() > 20);
        }
        let crosses = |case: &&&Case| match &case.changes[..] {
            [one, other, ..] => one.after_ms == other.after_ms && one.side != other.side,
            _ => false,
        };
        assert!(changed.iter().filter(crosses).count() > 5);
        assert!(changed.iter().all(|case| case.further.is_empty()));
    }
}

//! Scripted faults for tests: closures that look at each packet offered to a direction. The first rule that does not
//! pass decides; without a decision the link model does.

use restp_base::time::{Duration, Time};

/// What a rule sees of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// When it is offered.
    pub at: Time,
    /// Its number in this direction, the first being 1.
    pub number: u64,
    /// Its size on the wire.
    pub bytes: u32,
}

/// What a rule says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Nothing; ask the next rule, and the link model after the last.
    Pass,
    /// It arrives after this time, past queue, serialiser and error models.
    Deliver(Duration),
    /// It vanishes.
    Drop,
}

/// A scripted fault.
pub type Rule = Box<dyn FnMut(Offered) -> Ruling + Send>;

/// The ruling of the first rule that does not pass.
pub(crate) fn first_ruling(rules: &mut [Rule], packet: Offered) -> Ruling {
    rules
        .iter_mut()
        .map(|rule| rule(packet))
        .find(|&ruling| ruling != Ruling::Pass)
        .unwrap_or(Ruling::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_matches_wins() {
        let mut rules: Vec<Rule> = vec![
            Box::new(|packet| {
                if packet.number == 2 {
                    Ruling::Drop
                } else {
                    Ruling::Pass
                }
            }),
            Box::new(|packet| {
                if packet.bytes > 1000 {
                    Ruling::Deliver(Duration::from_millis(1))
                } else {
                    Ruling::Pass
                }
            }),
        ];
        let mut rule = |number, bytes| {
            first_ruling(
                &mut rules,
                Offered {
                    at: Time::ZERO,
                    number,
                    bytes,
                },
            )
        };
        assert_eq!(rule(1, 40), Ruling::Pass);
        assert_eq!(rule(2, 1500), Ruling::Drop);
        assert_eq!(rule(3, 1500), Ruling::Deliver(Duration::from_millis(1)));
    }
}

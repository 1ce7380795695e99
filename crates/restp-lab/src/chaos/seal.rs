//! The seal under both ends of a case, and who attacks it. Attackers are active until everything is whole.

use super::{Side, skewed};
use restp_base::random::Stream;
use serde::{Deserialize, Serialize};

/// How both ends are sealed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// The client knows the server's key; otherwise it takes the first that it meets.
    pub pinned: bool,
    /// A client that starts again still has its tokens, tickets and cookies.
    pub keeps: bool,
    /// The server accepts flows only of who has proved its key.
    pub awaits_proof: bool,
    /// Both have instructions for AES.
    pub fast_aes: bool,
    /// Handshakes computed in a second for addresses that prove nothing.
    pub unproved_per_second: u32,
    /// Who attacks, and how.
    #[serde(default)]
    pub attacks: Vec<Attack>,
}

/// One attacker. Rates are of the datagrams that `from` sends, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Attack {
    /// On the path: a byte of it is another.
    Change {
        /// Whose datagrams.
        from: Side,
        /// Probability.
        rate: f64,
    },
    /// On the path: it does not arrive.
    Drop {
        /// Whose datagrams.
        from: Side,
        /// Probability.
        rate: f64,
    },
    /// On the path: it arrives late.
    Delay {
        /// Whose datagrams.
        from: Side,
        /// Probability.
        rate: f64,
        /// Latest.
        most_ms: u64,
    },
    /// Beside the path: a copy comes, perhaps before it, perhaps from another address.
    Replay {
        /// Whose datagrams.
        from: Side,
        /// Probability.
        rate: f64,
        /// Latest.
        most_ms: u64,
        /// From the attacker's own address.
        elsewhere: bool,
    },
    /// Beside the path: something made of it and of others comes before it.
    Splice {
        /// Whose datagrams.
        from: Side,
        /// Probability.
        rate: f64,
    },
    /// Off the path: datagrams of every kind, made of nothing but what is public, under any address. With `names` that of
    /// somebody beside the path, who knows what sessions are called.
    Invent {
        /// Whom they reach.
        to: Side,
        /// From one to the next.
        every_ms: u64,
        /// Connection ids are those of sessions.
        names: bool,
    },
    /// A client with a key of its own says whatever it likes to the server, of what others said.
    Liar {
        /// From one lie to the next.
        every_ms: u64,
        /// How often the address on the envelope is not its own.
        claims: f64,
    },
    /// A server with a key of its own hears the client's requests before the server does, and answers in its name.
    Impostor {
        /// Probability that it hears one.
        rate: f64,
    },
}

/// Every third case is sealed.
const SEALED: f64 = 1.0 / 3.0;
/// Attackers of one case, at most.
const MOST: u64 = 4;

/// The seal of a case, if it has one.
pub fn draw(draw: &mut Stream) -> Option<Seal> {
    draw.chance(SEALED).then(|| {
        let pinned = draw.chance(0.7);
        let attacks = (0..draw.below(MOST + 1)).map(|_| attack(draw));
        Seal {
            pinned,
            attacks: attacks.filter(|attack| pinned || !attack.is_impostor()).collect(),
            keeps: draw.chance(0.7),
            awaits_proof: draw.chance(0.3),
            fast_aes: draw.chance(0.5),
            unproved_per_second: if draw.chance(0.3) {
                draw.below(4) as u32
            } else {
                50
            },
        }
    })
}

fn attack(draw: &mut Stream) -> Attack {
    let from = Side::BOTH[draw.below(2) as usize];
    let rate = 0.5 * draw.unit() * draw.unit();
    let most_ms = skewed(draw, 3_000);
    let every_ms = 20 + draw.below(1_000);
    match draw.below(13) {
        0 => Attack::Change { from, rate },
        1 => Attack::Drop { from, rate },
        2 => Attack::Delay { from, rate, most_ms },
        3..6 => Attack::Replay {
            from,
            rate,
            most_ms,
            elsewhere: draw.chance(0.4),
        },
        6 => Attack::Splice { from, rate },
        7 | 8 => Attack::Invent {
            to: from,
            every_ms,
            names: draw.chance(0.7),
        },
        9..12 => Attack::Liar {
            every_ms,
            claims: if draw.chance(0.5) { 0.0 } else { draw.unit() },
        },
        _ => Attack::Impostor { rate: draw.unit() },
    }
}

impl Attack {
    fn is_impostor(&self) -> bool {
        matches!(self, Attack::Impostor { .. })
    }
}

impl Seal {
    /// Says what is impossible about it.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), String> {
        if !self.pinned && self.attacks.iter().any(Attack::is_impostor) {
            return Err(
                "who takes the first key that it meets may meet an impostor's; choose pinned = true".into(),
            );
        }
        let is_still = |attack: &Attack| {
            matches!(
                attack,
                Attack::Invent { every_ms: 0, .. } | Attack::Liar { every_ms: 0, .. }
            )
        };
        if self.attacks.iter().any(is_still) {
            return Err("from one lie to the next at least 1 ms passes".into());
        }
        Ok(())
    }
}

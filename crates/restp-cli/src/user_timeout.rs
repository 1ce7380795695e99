//! How long a connection bears silence: what `--timeout` means for its timers (RFC 5482).

use restp::{Composition, Connection};
use restp_base::time::Duration;

/// Until a set-up packet is retransmitted for the first time: RFC 6298 (2.1), where OP-32 says 3 s for published runs.
const FIRST_HANDSHAKE_WAIT: Duration = Duration::from_secs(1);

/// What may change while a connection runs.
const KEYS: [&str; 5] = [
    "idle-timeout",
    "progress-timeout",
    "outage-timeout",
    "rto-ceiling",
    "rto-attempts",
];

/// How long a receiver bears a sender that is silent.
#[derive(Clone, Copy, Debug)]
pub struct UserTimeout {
    /// So long at least.
    pub own: Duration,
    /// As long as the sender says that it bears the receiver's silence, where that is longer.
    pub follows: bool,
}

impl UserTimeout {
    /// The longest that a sender is followed: it costs a place.
    const MOST: Duration = Duration::from_secs(24 * 3600);

    /// That of a receiver whose sender bears so many seconds.
    pub fn beside(self, sender_seconds: u32) -> Duration {
        let senders = Duration::from_secs(sender_seconds.into()).min(Self::MOST);
        if self.follows {
            self.own.max(senders)
        } else {
            self.own
        }
    }
}

/// Makes a connection bear silence for `user_timeout`, and no longer.
///
/// Retransmissions come often enough that an outage shorter than that is survived: doubling timers would sleep
/// through as much time again as the outage took.
pub fn bear(composition: &mut Composition, user_timeout: Duration) {
    composition.progress_timeout = user_timeout;
    composition.idle_timeout = user_timeout;
    composition.outage_timeout = user_timeout; // of profiles that take silence for an outage
    composition.handshake.rto = composition.handshake.rto.min(FIRST_HANDSHAKE_WAIT);
    let rto = &mut composition.rto;
    // Data leaves 255 times at most (OP-51): where a day is to be borne, the longest waits are longer.
    let ceiling = rto.ceiling.max(user_timeout / 200);
    rto.ceiling = ceiling.min((user_timeout / 10).max(rto.floor));
    rto.attempts = rto
        .attempts
        .max(attempts_within(user_timeout, rto.floor, rto.ceiling));
}

/// The same for one that runs.
pub fn bear_from_now(connection: &Connection, user_timeout: Duration) {
    let Some(composition) = connection.composition() else {
        return;
    };
    let mut longer = Composition::clone(&composition);
    bear(&mut longer, user_timeout);
    let numbers = longer.numbers();
    let changed = numbers.iter().filter(|(key, ..)| KEYS.contains(key));
    let changed = connection.reconfigure(changed.map(|(key, value, _)| (*key, value.as_str())));
    if let Err(error) = changed {
        // It is ending, or bears what it did before.
        tracing::debug!(%error, "the timeouts of the connection stay as they are");
    }
}

/// How often a timer that doubles from `floor` to `ceiling` expires until `user_timeout` is over.
fn attempts_within(user_timeout: Duration, floor: Duration, ceiling: Duration) -> u32 {
    let least = Duration::from_millis(1); // nobody has checked them yet
    let (mut wait, mut waited, mut attempts) = (floor.max(least), Duration::ZERO, 0);
    while waited <= user_timeout {
        (waited, wait) = (waited + wait, (wait * 2).min(ceiling).max(least));
        attempts += 1;
    }
    attempts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_followed_where_that_is_longer_for_a_day_at_most() {
        let own = Duration::from_secs(30);
        let of = |follows, seconds| UserTimeout { own, follows }.beside(seconds).as_nanos() / 1_000_000_000;
        assert_eq!(
            [0, 29, 3_600, 86_401, u32::MAX].map(|s| of(true, s)),
            [30, 30, 3_600, 86_400, 86_400]
        );
        assert_eq!(of(false, 3_600), 30);
    }

    #[test]
    fn an_outage_shorter_than_the_timeout_is_survived() {
        let mut composition = Composition::default();
        let user_timeout = Duration::from_secs(30);
        bear(&mut composition, user_timeout);
        let limits = [
            composition.progress_timeout,
            composition.idle_timeout,
            composition.outage_timeout,
        ];
        assert_eq!(limits, [user_timeout; 3]);
        assert_eq!(composition.rto.ceiling, Duration::from_secs(3));
        assert!(composition.check().is_ok());
    }

    /// From 51 s on the number of attempts was more than a composition may have, and `send` refused to begin.
    #[test]
    fn any_timeout_is_one_that_a_composition_can_have() {
        for seconds in [1, 30, 51, 120, 3_600, 86_400, 30 * 86_400] {
            let user_timeout = Duration::from_secs(seconds);
            let mut composition = Composition::default();
            bear(&mut composition, user_timeout);
            let rto = composition.rto;
            let (mut wait, mut waited) = (rto.floor, Duration::ZERO);
            for _ in 0..rto.attempts {
                (waited, wait) = (waited + wait, (wait * 2).min(rto.ceiling));
            }
            assert!(waited > user_timeout, "{seconds} s: {waited:?}");
            assert!(composition.check().is_ok(), "{seconds} s");
        }
    }

    #[test]
    fn a_short_timeout_keeps_the_timer_within_its_bounds() {
        let mut composition = Composition::default();
        bear(&mut composition, Duration::from_secs(1));
        assert_eq!(composition.rto.ceiling, composition.rto.floor);
        assert!(composition.check().is_ok());
    }
}

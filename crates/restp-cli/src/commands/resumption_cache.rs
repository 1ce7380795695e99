//! Cookies and tokens of earlier connections to receivers, shown to them again. Where one is not taken, one sentence says so: it
//! costs a round trip, and nothing needs to be done.

use crate::cookies::{CookieFile, Kept};
use crate::output::note;
use crate::transfer::{Outcome, SERVICE_PORT};
use restp::{Endpoint, Token};
use std::fmt::Display;
use std::net::SocketAddr;

/// Lines named one by one.
const NAMED: usize = 3;

/// Cookies and tokens of this user.
pub struct ResumptionCache {
    file: CookieFile,
    kept: Kept,
}

impl ResumptionCache {
    /// What the user's file holds, with a word on what is wrong in it; `None` where there is no place for one.
    pub fn of_user() -> Option<Self> {
        let file = CookieFile::of_user()?;
        let path = file.path().display();
        let kept = file.load().unwrap_or_else(|error| {
            note(format!("{path}: {error}; {HARMLESS}"));
            Kept::default()
        });
        if !kept.damaged.is_empty() {
            let lines = lines(&kept.damaged);
            note(format!("{path}, {lines}: damaged and ignored; {HARMLESS}"));
        }
        if !kept.ahead.is_empty() {
            let lines = lines(&kept.ahead);
            note(format!(
                "{path}, {lines}: the time lies in the future, so this host's clock was set back since; what is there is shown \
                 for a day at most, and nothing needs to be done"
            ));
        }
        Some(ResumptionCache { file, kept })
    }

    /// Hands them to the endpoint that connects next.
    pub fn tell(&self, endpoint: &Endpoint) {
        for kept in self.kept.cookies.values() {
            endpoint.keep_cookie(*kept);
        }
        for (key, token) in &self.kept.tokens {
            endpoint.keep_token(*key, token.clone());
        }
    }

    /// Is there a cookie of the receiver at `address`?
    pub fn knows(&self, address: SocketAddr) -> bool {
        self.kept.cookies.contains_key(&(address, SERVICE_PORT))
    }

    /// Keeps what there is for the next connection, and says whether what was shown at this one has served. `outcome`: of a
    /// transfer that succeeded.
    pub fn keep(&self, endpoint: &Endpoint, outcome: Option<&Outcome>) {
        let path = self.file.path().display();
        let saved = (self.file).save(&self.kept, &endpoint.cookies(), &endpoint.tokens());
        if let Err(error) = saved {
            note(format!(
                "{path}: {error}; the next transfer takes a round trip more"
            ));
        } else if let Some((address, why)) = outcome.and_then(|outcome| self.refused(endpoint, outcome)) {
            note(format!(
                "the token of an earlier visit to {address} was not taken: {why}; that cost one round trip, a new one is kept in \
                 {path}, and nothing needs to be done"
            ));
        }
    }

    /// Where what was left did not serve, and why.
    fn refused(&self, endpoint: &Endpoint, outcome: &Outcome) -> Option<(SocketAddr, &'static str)> {
        let reason = |remote: SocketAddr| {
            let key = endpoint.peer_key(remote);
            let shown = key.and_then(|key| self.kept.tokens.get(&key));
            let given = endpoint.tokens();
            let given = given.iter().find(|(other, _)| Some(*other) == key);
            // Of several paths one may have won the race that showed no cookie.
            let late = outcome.early_packets == 0 && outcome.paths.len() == 1 && self.knows(remote);
            let expired = self.kept.expired.contains(&(remote, SERVICE_PORT));
            let tickets = endpoint.seal_stats().refused_tickets;
            why(expired, shown.zip(given.map(|(_, token)| token)), tickets, late)
        };
        let remotes = outcome.paths.iter().map(|path| path.remote);
        remotes
            .filter_map(|remote| Some((remote, reason(remote)?)))
            .next()
    }
}

/// `expired`: the cookie; `tokens`: the one that was shown, the one that came in return; `tickets` that did not open;
/// `late`: a cookie was shown, and no early data was taken.
fn why(expired: bool, tokens: Option<(&Token, &Token)>, tickets: u64, late: bool) -> Option<&'static str> {
    match tokens {
        _ if expired => Some("it has expired"),
        Some((shown, given)) if shown.epoch != given.epoch => {
            Some("it is of another run of the receiver, or its line is damaged")
        }
        _ if tickets > 0 => Some("it has expired, or its line is damaged"),
        _ if late => Some("it is of another run of the receiver, or has expired"),
        _ => None,
    }
}

/// What a file that cannot be used means.
const HARMLESS: &str =
    "what was kept there costs one round trip and is kept anew, and nothing needs to be done";

/// `line 1`, `lines 1, 2`, `lines 1, 2, 3 and 5 more`.
fn lines(numbers: &[usize]) -> impl Display {
    let named: Vec<_> = numbers.iter().take(NAMED).map(usize::to_string).collect();
    let plural = if numbers.len() == 1 { "" } else { "s" };
    let more = match numbers.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("line{plural} {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_has_one_reason() {
        let token = |epoch| Token {
            epoch: [epoch; 8],
            ..Token::default()
        };
        let (shown, same, other) = (token(1), token(1), token(2));
        let (same, other) = (Some((&shown, &same)), Some((&shown, &other)));
        assert_eq!(why(false, same, 0, false), None);
        assert_eq!(why(false, None, 0, false), None);
        for (said, reason) in [
            (why(true, other, 1, true), "it has expired"),
            (why(false, other, 1, true), "it is of another run of the receiver"),
            (why(false, same, 1, true), "it has expired, or its line"),
            (
                why(false, None, 0, true),
                "it is of another run of the receiver, or has",
            ),
        ] {
            assert!(said.is_some_and(|said| said.starts_with(reason)), "{said:?}");
        }
    }

    #[test]
    fn few_lines_are_named() {
        assert_eq!(lines(&[7]).to_string(), "line 7");
        assert_eq!(lines(&[1, 2, 5]).to_string(), "lines 1, 2, 5");
        assert_eq!(lines(&[1, 2, 5, 6, 8]).to_string(), "lines 1, 2, 5 and 2 more");
    }
}

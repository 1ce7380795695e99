//! Cookies and tokens of receivers, kept from one run of `send` to the next: one line each in `restp/cookies` under the user's
//! cache directory (XDG Base Directory Specification), which nobody else may read.
//!
//! A token holds the secret that goes with its ticket: who reads the file can come to the receiver as this user for a day.
//!
//! What is lost or damaged costs a round trip, nothing more: a line that means nothing is left out, and counted so that it
//! can be mentioned. Runs that end at the same time keep what each other was given.

use restp::clock::unix_seconds;
use restp::files;
use restp::{Cookie, KeptCookie, PublicKey, Resumption, Secret, Token};
use restp_base::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Read at most: 1024 lines of either kind, as many as an endpoint keeps, of the longest kind.
const MAX_BYTES: u64 = 1024 * (128 + 384);

/// The file, if the user has a place for it.
pub struct CookieFile {
    path: PathBuf,
}

/// What a file holds, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Kept {
    /// Cookies that are still shown.
    pub cookies: BTreeMap<(SocketAddr, u16), KeptCookie>,
    /// Tokens by the key of the receiver.
    pub tokens: BTreeMap<PublicKey, Token>,
    /// Servers and services whose cookie is too old.
    pub expired: Vec<(SocketAddr, u16)>,
    /// Lines that mean nothing, counted from 1.
    pub damaged: Vec<usize>,
    /// Lines with a time that no cookie has unless the clock has been set back since.
    pub ahead: Vec<usize>,
}

impl CookieFile {
    /// Below `XDG_CACHE_HOME`, or `.cache` in `HOME`; `None` where neither is an absolute path.
    pub fn of_user() -> Option<CookieFile> {
        let path = files::below("XDG_CACHE_HOME", ".cache", "cookies")?;
        Some(CookieFile { path })
    }

    /// What it holds; nothing where it is not there yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self) -> io::Result<Kept> {
        match files::read(&self.path, MAX_BYTES) {
            Ok(bytes) => Ok(parse_all(&String::from_utf8_lossy(&bytes), unix_seconds())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Kept::default()),
            Err(error) => Err(error),
        }
    }

    /// Puts into it what changed since it held `before`: `cookies` and `tokens` are all there are now.
    ///
    /// # Errors
    /// When the folder or the file cannot be written; the old file is there still.
    pub fn save(
        &self,
        before: &Kept,
        cookies: &[KeptCookie],
        tokens: &[(PublicKey, Token)],
    ) -> io::Result<()> {
        let cookies = cookies.iter().map(|kept| ((kept.server, kept.port), *kept));
        let (cookies, tokens) = (cookies.collect(), tokens.iter().cloned().collect());
        files::update(&self.path, MAX_BYTES, |there| {
            // What cannot be read is worth a round trip: a new file takes its place.
            let now = unix_seconds();
            let there = parse_all(&String::from_utf8_lossy(&there.unwrap_or_default()), now);
            let same_cookie = |old: &KeptCookie, new: &KeptCookie| {
                old.cookie == new.cookie && new.remaining <= old.remaining
            };
            let cookies = merged(&before.cookies, &cookies, there.cookies, same_cookie);
            let tokens = merged(&before.tokens, &tokens, there.tokens, Token::eq);
            // Large enough from the beginning: a buffer that grew would leave secrets behind.
            let mut text = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize));
            let cookies = cookies.values().map(|kept| Zeroizing::new(line(kept, now)));
            for line in cookies.chain(tokens.iter().take(MAX_TOKENS).map(token_line)) {
                text.extend_from_slice(line.as_bytes());
            }
            Ok(text)
        })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What is to be kept when a run began with `before` and ends with `after`, and others made `there` of it meanwhile: what
/// the run did not touch is as they left it.
fn merged<K: Ord + Copy, V: Clone>(
    before: &BTreeMap<K, V>,
    after: &BTreeMap<K, V>,
    mut there: BTreeMap<K, V>,
    same: impl Fn(&V, &V) -> bool,
) -> BTreeMap<K, V> {
    let as_before = |key: &K, value: &V| before.get(key).is_some_and(|old| same(old, value));
    there.retain(|key, value| after.contains_key(key) || !as_before(key, value));
    let changed = after.iter().filter(|(key, value)| !as_before(key, value));
    there.extend(changed.map(|(key, value)| (*key, value.clone())));
    there
}

/// The lines of `text` at `now`, in seconds of Unix time.
pub fn parse_all(text: &str, now: u64) -> Kept {
    let mut kept = Kept::default();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
        if let Some((key, token)) = parse_token(line) {
            if kept.tokens.len() < MAX_TOKENS {
                kept.tokens.insert(key, token);
            }
            continue;
        }
        let Some((server, port, cookie, until)) = parse(line) else {
            kept.damaged.push(number);
            continue;
        };
        let left = until.saturating_sub(now);
        if left == 0 {
            kept.expired.push((server, port));
            continue;
        }
        if left > SHOWN_SECONDS + TOLERANCE_SECONDS {
            kept.ahead.push(number);
        }
        // A clock that was wrong makes no cookie live longer than one just given.
        let cookie = KeptCookie {
            server,
            port,
            cookie,
            remaining: Duration::from_secs(left.min(SHOWN_SECONDS)),
        };
        kept.cookies.insert((server, port), cookie);
    }
    kept
}

/// Server, service port, cookie in hex, last second in which it is shown.
fn line(kept: &KeptCookie, now: u64) -> String {
    let hex = crate::transfer::hex(kept.cookie.as_bytes());
    let until = now + kept.remaining.as_nanos() / 1_000_000_000;
    format!("{} {} {hex} {until}\n", kept.server, kept.port)
}

fn parse(line: &str) -> Option<(SocketAddr, u16, Cookie, u64)> {
    let mut words = line.split(' ');
    let (server, port) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let cookie = data_encoding::HEXLOWER.decode(words.next()?.as_bytes()).ok()?;
    let (cookie, until) = (Cookie::new(&cookie)?, words.next()?.parse().ok()?);
    words.next().is_none().then_some((server, port, cookie, until))
}

/// Key of the receiver, epoch and proof of the address of a token; key of the sender, ticket and its secret, if there is one.
fn token_line((key, token): (&PublicKey, &Token)) -> Zeroizing<String> {
    let hex = crate::transfer::hex;
    let mut line = Zeroizing::new(String::with_capacity(MAX_TOKEN_LINE));
    line.push_str(&format!(
        "token {key} {} {}",
        hex(&token.epoch),
        hex(&token.address)
    ));
    if let Some(given) = &token.resumption {
        line.push_str(&format!(" {} {} ", given.client, hex(&given.ticket)));
        data_encoding::HEXLOWER.encode_append(&given.secret[..], &mut line);
    }
    line.push('\n');
    line
}

fn parse_token(line: &str) -> Option<(PublicKey, Token)> {
    let words: Vec<_> = line.strip_prefix("token ")?.split(' ').collect();
    let (given, resumption) = words.split_at_checked(3)?;
    let resumption = match resumption {
        [] => None,
        [client, ticket, secret] => Some(Resumption {
            client: client.parse().ok()?,
            ticket: bytes(ticket)?,
            secret: secret_bytes(secret)?,
        }),
        _ => return None,
    };
    let token = Token {
        epoch: bytes(given[1])?,
        address: bytes(given[2])?,
        resumption,
    };
    Some((given[0].parse().ok()?, token))
}

/// The same of what nobody else may know.
fn secret_bytes<const N: usize>(word: &str) -> Option<Secret<N>> {
    let mut secret = Secret::blank();
    let fits = word.len() == 2 * N;
    let decoded = fits.then(|| data_encoding::HEXLOWER.decode_mut(word.as_bytes(), &mut *secret))?;
    decoded.ok()?;
    Some(secret)
}

/// As many bytes as are wanted, from hex.
fn bytes<const N: usize>(word: &str) -> Option<[u8; N]> {
    let bytes = data_encoding::HEXLOWER.decode(word.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// Longest line of a token: two keys in base 32; epoch, proof, ticket and secret in hex.
const MAX_TOKEN_LINE: usize = 384;

/// Tokens kept at most.
const MAX_TOKENS: usize = 1024;

/// A cookie is shown for a day at most (ResTP §3.5.5).
const SHOWN_SECONDS: u64 = 24 * 3600;

/// What a clock may be set by without a word: daemons correct it by less.
const TOLERANCE_SECONDS: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn kept(port: u16) -> KeptCookie {
        KeptCookie {
            server: "[2001:db8::7]:4000".parse().unwrap(),
            port,
            cookie: Cookie::new(&[0xA7, 1, 2, 3]).unwrap(),
            remaining: Duration::from_secs(100),
        }
    }

    fn token(epoch: u8, resumption: Option<Resumption>) -> Token {
        Token {
            epoch: [epoch; 8],
            address: [2; 16],
            resumption,
        }
    }

    fn ports(kept: &Kept) -> Vec<u16> {
        kept.cookies.keys().map(|(_, port)| *port).collect()
    }

    #[test]
    fn what_is_saved_is_loaded_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restp").join("cookies");
        let file = CookieFile { path };
        let none = file.load().unwrap();
        assert!(none.cookies.is_empty() && none.tokens.is_empty(), "no file yet");
        let resumption = Resumption {
            client: PublicKey([4; 32]),
            ticket: [5; 60],
            secret: [6; 32].into(),
        };
        let tokens = [
            (PublicKey([3; 32]), token(1, Some(resumption))),
            (PublicKey([7; 32]), token(1, None)),
        ];
        file.save(&none, &[kept(1), kept(2)], &[]).unwrap();
        let before = file.load().unwrap();
        file.save(&before, &[kept(2), kept(3)], &tokens).unwrap();
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let loaded = file.load().unwrap();
        assert_eq!(loaded.tokens, tokens.into());
        assert_eq!(ports(&loaded), [2, 3]);
        let second = loaded.cookies.values().next().unwrap();
        assert_eq!(second.cookie, kept(2).cookie);
        assert!(second.remaining <= Duration::from_secs(100));
        assert!(loaded.damaged.is_empty() && loaded.expired.is_empty() && loaded.ahead.is_empty());
    }

    #[test]
    fn runs_that_began_together_keep_what_each_other_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cookies");
        let file = CookieFile { path };
        let (mine, yours) = (PublicKey([1; 32]), PublicKey([2; 32]));
        file.save(&Kept::default(), &[kept(1)], &[(mine, token(1, None))])
            .unwrap();
        let (first, second) = (file.load().unwrap(), file.load().unwrap());
        let both = [(mine, token(1, None)), (yours, token(1, None))];
        file.save(&first, &[kept(1), kept(2)], &both).unwrap();
        file.save(&second, &[kept(1), kept(3)], &[(mine, token(9, None))])
            .unwrap();
        let after = file.load().unwrap();
        assert_eq!(ports(&after), [1, 2, 3]);
        assert_eq!(
            after.tokens,
            [(mine, token(9, None)), (yours, token(1, None))].into()
        );
        // What the user removes meanwhile stays removed.
        fs::write(file.path(), "").unwrap();
        let unchanged: Vec<_> = after.cookies.values().copied().collect();
        file.save(&after, &unchanged, &[(yours, token(3, None))]).unwrap();
        let last = file.load().unwrap();
        assert_eq!(
            (ports(&last), last.tokens.len()),
            (vec![], 1),
            "the changed token alone"
        );
    }

    #[test]
    fn damage_costs_the_lines_it_hits() {
        let good = line(&kept(1), 1000);
        assert_eq!(ports(&parse_all(&good, 1000)), [1]);
        for bad in [
            "[2001:db8::7]:4000",
            "[2001:db8::7]:4000 1 a70102 1100",
            "[2001:db8::7]:4000 1 00000000 1100",
            "[2001:db8::7]:4000 1 xy 1100",
            "[2001:db8::7]:4000 70000 a7010203 1100",
            "[2001:db8::7]:4000 1 a7010203 -1",
            "[2001:db8::7]:4000 1 a7010203 1100 more",
        ] {
            let kept = parse_all(&format!("\n{bad}\n{good}"), 1000);
            assert_eq!((ports(&kept), &kept.damaged[..]), (vec![1], &[2][..]), "{bad:?}");
        }
        let (key, ticket) = (PublicKey([3; 32]), "05".repeat(60));
        let short = format!("token {key} {} {}", "01".repeat(8), "02".repeat(16));
        let long = format!("{short} {key} {ticket} {}", "06".repeat(32));
        assert!(parse_token(&short).is_some() && parse_token(&long).is_some());
        for bad in [
            "token",
            &format!("{short} "),
            &format!("{short} {key}"),
            &long[..long.len() - 2],
            &format!("{long} more"),
            &long.replace(&ticket, &ticket[2..]),
        ] {
            assert_eq!(parse_all(bad, 1000).damaged, [1], "{bad:?}");
        }
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_and_no_cookie_lives_longer_for_it() {
        let now = 2_000_000_000;
        let year = 365 * SHOWN_SECONDS;
        let text = line(&kept(1), now);
        let set_back = parse_all(&text, now - year);
        assert_eq!(set_back.ahead, [1]);
        let shown = set_back.cookies.values().next().unwrap().remaining;
        assert_eq!(shown, Duration::from_secs(SHOWN_SECONDS));
        let corrected = parse_all(&text, now - TOLERANCE_SECONDS);
        assert!(corrected.ahead.is_empty(), "what daemons do");
        for later in [now + 100, now + year] {
            let expired = parse_all(&text, later);
            assert_eq!(expired.expired, [(kept(1).server, 1)]);
            assert!(expired.cookies.is_empty() && expired.ahead.is_empty());
        }
        let far = parse_all("[2001:db8::7]:4000 1 a7010203 18446744073709551615", 1000);
        assert_eq!((ports(&far), far.ahead), (vec![1], vec![1]));
    }

    #[test]
    fn bytes_that_mean_nothing_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cookies");
        let good = line(&kept(5), unix_seconds());
        fs::write(&path, [b"\xff\xfe\n".as_slice(), good.as_bytes()].concat()).unwrap();
        let file = CookieFile { path };
        let loaded = file.load().unwrap();
        assert_eq!((ports(&loaded), loaded.damaged), (vec![5], vec![1]));
        fs::write(file.path(), vec![b'x'; 1 << 20]).unwrap();
        assert!(file.load().is_err());
        file.save(&Kept::default(), &[kept(6)], &[]).unwrap();
        assert_eq!(ports(&file.load().unwrap()), [6]);
    }
}

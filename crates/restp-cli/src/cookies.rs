//! Cookies and passes of receivers, kept from one run of `send` to the next: one line each in `restp/cookies` under the user's
//! cache directory (XDG Base Directory Specification), which nobody else may read.
//!
//! A pass holds the secret that goes with its ticket: who reads the file can come to the receiver as this user for a day.
//!
//! What is lost or damaged costs a round trip, nothing more: a line that means nothing is skipped, and a file that
//! cannot be written is mentioned.

use restp::clock::unix_seconds;
use restp::{Cookie, KeptCookie, Pass, PublicKey, Resumption};
use restp_base::time::Duration;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Read at most: 1024 lines of either kind, as many as an endpoint keeps, of the longest kind.
const MAX_BYTES: u64 = 1024 * (128 + 384);

/// The file, if the user has a place for it.
pub struct CookieFile {
    path: PathBuf,
}

impl CookieFile {
    /// Below `XDG_CACHE_HOME`, or `.cache` in `HOME`; `None` where neither is an absolute path.
    pub fn of_user() -> Option<CookieFile> {
        let absolute = |name| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        let path = cache.join("restp").join("cookies");
        Some(CookieFile { path })
    }

    /// What it holds that is still shown.
    pub fn load(&self) -> (Vec<KeptCookie>, Vec<(PublicKey, Pass)>) {
        parse_all(&read(&self.path).unwrap_or_default(), unix_seconds())
    }

    /// Replaces its contents.
    ///
    /// # Errors
    /// When the folder or the file cannot be written; the old file is there still.
    pub fn save(&self, kept: &[KeptCookie], passes: &[(PublicKey, Pass)]) -> io::Result<()> {
        let now = unix_seconds();
        let cookies = kept.iter().map(|kept| line(kept, now));
        let text: String = cookies
            .chain(passes.iter().take(MAX_PASSES).map(pass_line))
            .collect();
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?; // only its owner may open it
        file.write_all(text.as_bytes())?;
        file.persist(&self.path)?;
        Ok(())
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn read(path: &Path) -> io::Result<String> {
    // Asked before opening: to open a pipe without a writer waits for one.
    if !fs::metadata(path)?.is_file() {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines that mean something at `now`, in seconds of Unix time.
pub fn parse_all(text: &str, now: u64) -> (Vec<KeptCookie>, Vec<(PublicKey, Pass)>) {
    let cookies = text.lines().filter_map(|line| parse(line, now));
    let passes = text.lines().filter_map(parse_pass).take(MAX_PASSES);
    (cookies.collect(), passes.collect())
}

/// Server, service port, cookie in hex, last second in which it is shown.
fn line(kept: &KeptCookie, now: u64) -> String {
    let hex = crate::transfer::hex(kept.cookie.as_bytes());
    let until = now + kept.remaining.as_nanos() / 1_000_000_000;
    format!("{} {} {hex} {until}\n", kept.server, kept.port)
}

fn parse(line: &str, now: u64) -> Option<KeptCookie> {
    let mut words = line.split(' ');
    let (server, port) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let cookie = data_encoding::HEXLOWER.decode(words.next()?.as_bytes()).ok()?;
    let cookie = Cookie::new(&cookie)?;
    let until: u64 = words.next()?.parse().ok()?;
    // The endpoint caps it: a clock that was wrong makes no cookie live longer than one just given.
    let seconds = until.checked_sub(now).filter(|left| *left > 0)?;
    let seconds = seconds.min(LONGEST_SECONDS);
    words.next().is_none().then_some(KeptCookie {
        server,
        port,
        cookie,
        remaining: Duration::from_secs(seconds),
    })
}

/// Key of the receiver, epoch and token of a pass; key of the sender, ticket and its secret, if there is one.
fn pass_line((key, pass): &(PublicKey, Pass)) -> String {
    let hex = crate::transfer::hex;
    let resumption = pass.resumption.map_or(String::new(), |given| {
        format!(" {} {} {}", given.client, hex(&given.ticket), hex(&given.secret))
    });
    format!(
        "pass {key} {} {}{resumption}\n",
        hex(&pass.epoch),
        hex(&pass.token)
    )
}

fn parse_pass(line: &str) -> Option<(PublicKey, Pass)> {
    let words: Vec<_> = line.strip_prefix("pass ")?.split(' ').collect();
    let (given, resumption) = words.split_at_checked(3)?;
    let resumption = match resumption {
        [] => None,
        [client, ticket, secret] => Some(Resumption {
            client: client.parse().ok()?,
            ticket: bytes(ticket)?,
            secret: bytes(secret)?,
        }),
        _ => return None,
    };
    let pass = Pass {
        epoch: bytes(given[1])?,
        token: bytes(given[2])?,
        resumption,
    };
    Some((given[0].parse().ok()?, pass))
}

/// As many bytes as are wanted, from hex.
fn bytes<const N: usize>(word: &str) -> Option<[u8; N]> {
    let bytes = data_encoding::HEXLOWER.decode(word.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// Passes kept at most.
const MAX_PASSES: usize = 1024;

/// Longer than any cookie is shown, and no more than a [`Duration`] holds.
const LONGEST_SECONDS: u64 = 365 * 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn kept(port: u16) -> KeptCookie {
        KeptCookie {
            server: "[2001:db8::7]:4000".parse().unwrap(),
            port,
            cookie: Cookie::new(&[0xA7, 1, 2, 3]).unwrap(),
            remaining: Duration::from_secs(100),
        }
    }

    #[test]
    fn what_is_saved_is_loaded_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restp").join("cookies");
        let file = CookieFile { path };
        assert_eq!(file.load(), (vec![], vec![]), "no file yet");
        let resumption = Resumption {
            client: PublicKey([4; 32]),
            ticket: [5; 60],
            secret: [6; 32],
        };
        let pass = |resumption| Pass {
            epoch: [1; 8],
            token: [2; 16],
            resumption,
        };
        let passes = [
            (PublicKey([3; 32]), pass(Some(resumption))),
            (PublicKey([7; 32]), pass(None)),
        ];
        file.save(&[kept(1), kept(2)], &[]).unwrap();
        file.save(&[kept(2), kept(3)], &passes).unwrap();
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (loaded, kept_passes) = file.load();
        assert_eq!(kept_passes, passes);
        assert_eq!(loaded.iter().map(|kept| kept.port).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(
            (loaded[0].server, loaded[0].cookie),
            (kept(2).server, kept(2).cookie)
        );
        assert!(loaded[0].remaining <= Duration::from_secs(100));
    }

    #[test]
    fn damage_costs_the_lines_it_hits() {
        let good = line(&kept(1), 1000);
        assert!(parse(good.trim_end(), 1000).is_some());
        assert!(parse(good.trim_end(), 1100).is_none(), "too old");
        for bad in [
            "",
            "[2001:db8::7]:4000",
            "[2001:db8::7]:4000 1 a70102 1100",
            "[2001:db8::7]:4000 1 00000000 1100",
            "[2001:db8::7]:4000 1 xy 1100",
            "[2001:db8::7]:4000 70000 a7010203 1100",
            "[2001:db8::7]:4000 1 a7010203 -1",
            "[2001:db8::7]:4000 1 a7010203 1100 more",
        ] {
            assert_eq!(parse(bad, 1000), None, "{bad:?}");
        }
        let (key, ticket) = (PublicKey([3; 32]), "05".repeat(60));
        let short = format!("pass {key} {} {}", "01".repeat(8), "02".repeat(16));
        let long = format!("{short} {key} {ticket} {}", "06".repeat(32));
        assert!(parse_pass(&short).is_some() && parse_pass(&long).is_some());
        for bad in [
            "pass",
            &format!("{short} "),
            &format!("{short} {key}"),
            &long[..long.len() - 2],
            &format!("{long} more"),
            &long.replace(&ticket, &ticket[2..]),
        ] {
            assert_eq!(parse_pass(bad), None, "{bad:?}");
        }
        let far = parse("[2001:db8::7]:4000 1 a7010203 18446744073709551615", 1000).unwrap();
        assert_eq!(far.remaining, Duration::from_secs(LONGEST_SECONDS));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cookies");
        fs::write(
            &path,
            [
                b"\xff\xfe\n".as_slice(),
                line(&kept(5), unix_seconds()).as_bytes(),
                &[b'x'; 1 << 20],
            ]
            .concat(),
        )
        .unwrap();
        let (loaded, _) = CookieFile { path }.load();
        assert_eq!(loaded.len(), 1);
    }
}

//! What is forwarded, as typed: `[BIND:]PORT:HOST:HOSTPORT`, as `ssh -L` and `ssh -R` have it.

use std::str::FromStr;

/// Where a side listens when nothing else is said: for this host alone.
const BIND: &str = "127.0.0.1";

/// Stands for every address.
const EVERYWHERE: &str = "*";

/// One `-L` or `-R`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where to listen.
    pub listen: Listen,
    /// Where connections go; nothing: to the first that the server allows.
    pub target: Option<(String, u16)>,
}

/// `[BIND:]PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// An address, IPv6 in brackets, or a name.
    pub host: String,
    /// 0 for any free one.
    pub port: u16,
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: write PORT, or BIND:PORT, such as 8080, *:8080 or [::1]:8080");
        match &parts(text).ok_or_else(wrong)?[..] {
            [port] => Listen::of(BIND, port).ok_or_else(wrong),
            [bind, port] => Listen::of(bind, port).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

impl Listen {
    fn of(bind: &str, port: &str) -> Option<Self> {
        let host = if bind == EVERYWHERE { "[::]" } else { bind };
        Some(Listen {
            host: host.to_owned(),
            port: port.parse().ok()?,
        })
    }

    /// Without the brackets of IPv6, as the system takes it.
    pub fn host_and_port(&self) -> (&str, u16) {
        (bare(&self.host), self.port)
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?}: write [BIND:]PORT:HOST:HOSTPORT, such as 8080:127.0.0.1:80 or *:8080:[::1]:80")
        };
        let parts = parts(text).ok_or_else(wrong)?;
        let target = |host: &str, port: &str| Some((host.to_owned(), port.parse().ok()?));
        let (listen, target) = match parts[..] {
            [port] => (Listen::of(BIND, port), Some(None)),
            [bind, port] => (Listen::of(bind, port), Some(None)),
            [port, host, to] => (Listen::of(BIND, port), target(host, to).map(Some)),
            [bind, port, host, to] => (Listen::of(bind, port), target(host, to).map(Some)),
            _ => return Err(wrong()),
        };
        Ok(Rule {
            listen: listen.ok_or_else(wrong)?,
            target: target.ok_or_else(wrong)?,
        })
    }
}

/// `host` without the brackets of IPv6.
fn bare(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// The parts between colons, of which those in brackets are none; each must have something in it.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let end = match rest.strip_prefix('[') {
            Some(_) => rest.find(']')? + 1,
            None => rest.find(':').unwrap_or(rest.len()),
        };
        let (part, behind) = rest.split_at(end);
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        if behind.is_empty() {
            return Some(parts);
        }
        rest = behind.strip_prefix(':')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_for_ssh() {
        for (text, host, port, target) in [
            (
                "8080:example.org:80",
                "127.0.0.1",
                8080,
                Some(("example.org", 80)),
            ),
            ("0:127.0.0.1:22", "127.0.0.1", 0, Some(("127.0.0.1", 22))),
            ("*:8080:a:80", "[::]", 8080, Some(("a", 80))),
            ("10.0.0.1:8080:a:80", "10.0.0.1", 8080, Some(("a", 80))),
            ("[::1]:8080:[fe80::1]:80", "[::1]", 8080, Some(("[fe80::1]", 80))),
            ("8080:[::1]:80", "127.0.0.1", 8080, Some(("[::1]", 80))),
            ("2222", "127.0.0.1", 2222, None),
            ("*:2222", "[::]", 2222, None),
        ] {
            let rule: Rule = text.parse().expect(text);
            assert_eq!((&rule.listen.host[..], rule.listen.port), (host, port), "{text}");
            let given = rule.target.as_ref().map(|(host, port)| (&host[..], *port));
            assert_eq!(given, target, "{text}");
        }
        assert_eq!(
            "[::1]:1".parse::<Listen>().expect("one").host_and_port(),
            ("::1", 1)
        );
    }

    #[test]
    fn what_is_no_rule_is_answered_with_one() {
        for text in [
            "",
            ":",
            "a",
            "65536",
            "8080:",
            ":8080",
            "8080:a:",
            "8080::80",
            "8080:a:b",
            "x:8080:a:b",
            "a:b:c:d:e",
            "[::1:8080",
            "[::1]8080",
            "8080:a:80:",
            "-1:a:80",
        ] {
            let why = text.parse::<Rule>().expect_err(text);
            assert!(why.contains("[BIND:]PORT:HOST:HOSTPORT"), "{why}");
        }
        for text in ["a:b:1", "1:2:3", "", "a"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}

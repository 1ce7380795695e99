//! By which path an acknowledgement of several paths returns (CMT §3).

use std::fmt;
use std::str::FromStr;

/// The rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckReturn {
    /// The path by which data arrived: SCTP takes that of the last, which CMT was published with, ResTP all in turn.
    #[default]
    Any,
    /// Always this one, counted from 0.
    Fixed(usize),
}

impl AckReturn {
    /// The path of an acknowledgement that is due after data arrived on `latest`. A fixed one that does not exist, or not
    /// yet, is no path.
    pub fn choose(self, latest: usize, exists: impl Fn(usize) -> bool) -> usize {
        match self {
            AckReturn::Fixed(path) if exists(path) => path,
            AckReturn::Any | AckReturn::Fixed(_) => latest,
        }
    }
}

impl fmt::Display for AckReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckReturn::Any => f.write_str("any"),
            AckReturn::Fixed(path) => write!(f, "{}", path + 1),
        }
    }
}

impl FromStr for AckReturn {
    type Err = ();

    /// `any`, or the number of a path from 1 on.
    fn from_str(value: &str) -> Result<Self, ()> {
        match value {
            "any" => Ok(AckReturn::Any),
            path => {
                let path: usize = path.parse().map_err(|_| ())?;
                path.checked_sub(1).map(AckReturn::Fixed).ok_or(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_path_is_used_as_soon_as_it_exists() {
        let two = |path| path < 2;
        assert_eq!(AckReturn::Any.choose(1, two), 1);
        assert_eq!(AckReturn::Fixed(0).choose(1, two), 0);
        assert_eq!(AckReturn::Fixed(2).choose(1, two), 1);
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for (written, rule) in [
            ("any", Ok(AckReturn::Any)),
            ("1", Ok(AckReturn::Fixed(0))),
            ("8", Ok(AckReturn::Fixed(7))),
            ("0", Err(())),
            ("both", Err(())),
            ("-1", Err(())),
        ] {
            assert_eq!(written.parse::<AckReturn>(), rule, "{written}");
            assert!(rule.is_err() || rule.is_ok_and(|rule| rule.to_string() == written));
        }
    }
}

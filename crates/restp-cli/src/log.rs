//! What `--verbose` and RUST_LOG show of the library's events.

use crate::args::LogArgs;
use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Begins to show them on standard error; a second call in one process changes nothing.
pub fn begin(arguments: LogArgs) {
    let Some(targets) = targets(arguments.verbose, std::env::var("RUST_LOG").ok().as_deref()) else {
        return;
    };
    let stderr = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let _ = tracing_subscriber::registry()
        .with(stderr)
        .with(targets)
        .try_init();
}

/// What is shown: as the environment says, otherwise as often as was asked. None where nobody asks.
fn targets(verbose: u8, environment: Option<&str>) -> Option<Targets> {
    if let Some(words) = environment.filter(|words| !words.is_empty()) {
        match words.parse() {
            Ok(targets) => return Some(targets),
            Err(error) => crate::output::note(format!(
                "RUST_LOG={words}: {error}; write levels such as debug, or restp=trace,restp_cli=debug"
            )),
        }
    }
    let level = match verbose {
        0 => return None,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    Some(Targets::new().with_targets([("restp", level), ("restp_cli", level)]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;
    use tracing::Level;

    #[test]
    fn the_environment_has_the_last_word() {
        let shows = |targets: &Targets, target, level: Level| targets.would_enable(target, &level);
        assert!(targets(0, None).is_none() && targets(0, Some("")).is_none());
        let once = targets(1, None).unwrap();
        assert!(shows(&once, "restp::driver", Level::DEBUG) && !shows(&once, "restp::driver", Level::TRACE));
        assert!(!shows(&once, "hyper", Level::ERROR));
        assert!(shows(&targets(2, None).unwrap(), "restp", Level::TRACE));
        let named = targets(2, Some("restp::driver=warn")).unwrap();
        assert!(shows(&named, "restp::driver", Level::WARN) && !shows(&named, "restp::socket", Level::WARN));
        assert!(
            targets(1, Some("restp=loud")).is_some(),
            "what means nothing changes nothing"
        );
    }
}

//! One file per command.

mod activation;
pub mod bench;
mod beside;
pub mod cache;
mod carrier;
pub mod chaos;
mod client;
pub mod decode;
mod dial;
pub mod emulate;
pub mod fetch;
pub mod forward;
mod host;
pub mod keygen;
pub mod manual;
mod mismatch;
pub mod model;
mod node;
pub mod paths;
pub mod pipe;
mod places;
pub mod profiles;
pub mod publish;
pub mod recv;
pub mod relay;
pub mod report;
pub mod reproduce;
pub mod send;
pub mod serve;
pub mod sim;
pub mod top;
mod trust;
pub mod tunnel;
mod visits;
mod words;

use crate::failure::Failure;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use restp::Composition;
use restp_base::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a closed endpoint may take to say goodbye: that its last packets leave, and repeats are answered.
const GOODBYE: std::time::Duration = std::time::Duration::from_secs(1);

/// Threads of files end within this time, or the process ends without them.
const THREADS_END: std::time::Duration = std::time::Duration::from_secs(3);

/// Until a set-up packet is repeated for the first time: RFC 6298 (2.1), where OP-32 says 3 s for published runs.
const FIRST_HANDSHAKE_WAIT: Duration = Duration::from_secs(1);

/// Runs `command` on a runtime of one thread: protocol and application share it, so that a datagram costs no
/// wake-up of another thread; files have threads of their own.
fn run<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::operation(format!("the runtime could not start: {error}")))?;
    let result = runtime.block_on(async {
        bear_file_size_limits();
        command.await
    });
    // Temporary files are removed by their threads.
    runtime.shutdown_timeout(THREADS_END);
    result
}

/// A file that becomes longer than a limit allows (`ulimit -f`) is a failed write then, which is said as one. Without this the system
/// ends the process by a signal, without a word. The system tells of the error as soon as somebody listens to the signal.
fn bear_file_size_limits() {
    if let Err(error) = signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)) {
        tracing::debug!(%error, "a file that is too long ends the process");
    }
}

/// As many open files as the system allows. Each host of a relay and each of its peers has a port, each flow of datagrams and each
/// TCP connection that is forwarded a socket, each transfer that is received some files and folders: with the usual 1024 those of one
/// source could take them all.
fn most_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// Makes a connection bear silence for `user_timeout`, and no longer.
///
/// Retransmissions come often enough that an outage shorter than that is survived: doubling timers would sleep
/// through as much time again as the outage took.
fn bear(composition: &mut Composition, user_timeout: Duration) {
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

/// What `--plain` costs, said each time.
fn warn_of_plain() {
    crate::output::note(
        "warning: --plain: whoever is on the way can read and change what is sent, and speak for either side",
    );
}

/// The form the runtime's timers take.
fn std_duration(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

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

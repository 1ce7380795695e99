//! One file per command.

mod activation;
mod admission_limit;
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
pub mod profiles;
pub mod publish;
mod reach;
pub mod recv;
pub mod relay;
pub mod report;
pub mod reproduce;
mod resumption_cache;
pub mod send;
pub mod serve;
pub mod sim;
pub mod top;
mod trust;
pub mod tunnel;
mod words;

use crate::failure::Failure;
use crate::stdin;
use crate::user_timeout::bear;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use restp_base::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a closed endpoint may take to say goodbye: that its last packets leave, and retransmissions are answered.
const GOODBYE: std::time::Duration = std::time::Duration::from_secs(1);

/// Threads of files end within this time, or the process ends without them.
const THREADS_END: std::time::Duration = std::time::Duration::from_secs(3);

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
    if stdin::is_read() {
        runtime.shutdown_background();
    } else {
        // Temporary files are removed by their threads.
        runtime.shutdown_timeout(THREADS_END);
    }
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

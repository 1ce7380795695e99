//! A connection to another host that may have several addresses, of which some may not be reached now: the first that answers, or all as paths.

use super::std_duration;
use crate::failure::Failure;
use crate::output::{note, span};
use crate::progress::Progress;
use restp::{CloseReason, ConnectError, Connection, Endpoint};
use restp_base::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

/// Head start of each address over the next one (RFC 8305 §8).
pub const HEAD_START: std::time::Duration = std::time::Duration::from_millis(250);

/// Who waits longer for an answer is told what for. So often it is looked whether a network leads there.
pub const SOON: std::time::Duration = std::time::Duration::from_millis(500);

const CHECK: &str = "check that `restp recv` or `restp serve` runs there, with or without --plain as here, that the ticket is its latest, and that firewalls let UDP \
                     through to that port (--timeout waits longer)";

/// How several addresses are tried.
#[derive(Clone, Copy, Debug)]
pub enum Attempt {
    /// One connection over every path.
    AllPaths,
    /// A connection to each address, so much after the one before, until one stands.
    Each(std::time::Duration),
}

impl Attempt {
    /// The first one to addresses of which nothing is known.
    pub fn first(all_paths: bool) -> Self {
        if all_paths {
            Attempt::AllPaths
        } else {
            Attempt::Each(HEAD_START)
        }
    }
}

/// [`reach`], and says whom it tries to reach.
///
/// # Errors
/// When nobody answers there, or somebody else.
pub async fn connect(
    endpoint: &Arc<Endpoint>,
    places: (&[SocketAddr], u16),
    all_paths: bool,
    user_timeout: Duration,
) -> Result<Connection, Failure> {
    let progress = Progress::new();
    let trying = async {
        tokio::time::sleep(SOON).await;
        let _line = progress.trying(&format!("trying to reach {}", listed(places.0)));
        std::future::pending::<std::convert::Infallible>().await
    };
    tokio::select! {
        connected = reach(endpoint, places, Attempt::first(all_paths), user_timeout) => connected,
        never = trying => match never {},
    }
}

/// Waits for a connection to one of `addresses`, or over all of them, as long as `user_timeout` lasts: also for a network that leads there.
///
/// # Errors
/// When nobody answers there, or somebody else.
pub async fn reach(
    endpoint: &Arc<Endpoint>,
    (addresses, port): (&[SocketAddr], u16),
    attempt: Attempt,
    user_timeout: Duration,
) -> Result<Connection, Failure> {
    let routes = Routes::to(addresses);
    let connected = async {
        match attempt {
            Attempt::AllPaths => over_all(endpoint, addresses, port, &routes).await,
            Attempt::Each(head_start) => first_of(endpoint, addresses, port, head_start, &routes).await,
        }
    };
    let outcome = tokio::select! {
        outcome = timeout(std_duration(user_timeout), connected) => outcome,
        never = routes.tell() => match never {},
    };
    let there = listed(addresses);
    match outcome {
        Ok(connected) => connected.map_err(|why| Failure::operation(format!("no connection: {why}"))),
        Err(_) if routes.are_missing() => Err(Failure::operation(format!(
            "no network led to {there} within {}; check the links of this host (--timeout waits longer)",
            span(user_timeout)
        ))),
        Err(_) => Err(Failure::operation(format!(
            "nobody answered at {there} within {}; {CHECK}",
            span(user_timeout)
        ))),
    }
}

/// Says that somebody waits.
pub fn no_network(addresses: &[SocketAddr]) -> String {
    format!("no network leads to {} now; waiting for one", listed(addresses))
}

/// Attempts that wait for a network.
struct Routes<'a> {
    addresses: &'a [SocketAddr],
    /// So many do, of so many.
    waiting: Arc<AtomicUsize>,
    all: AtomicUsize,
}

impl<'a> Routes<'a> {
    fn to(addresses: &'a [SocketAddr]) -> Self {
        Routes {
            addresses,
            waiting: Arc::default(),
            all: AtomicUsize::new(usize::MAX),
        }
    }

    /// So many attempts go on.
    fn expect(&self, attempts: usize) {
        self.all.store(attempts, Ordering::Relaxed);
    }

    fn are_missing(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.all.load(Ordering::Relaxed)
    }

    /// Says once that nothing leads there, where that lasts.
    async fn tell(&self) -> std::convert::Infallible {
        let mut looks = interval(SOON);
        let mut missing = 0;
        while missing < 2 {
            looks.tick().await;
            missing = if self.are_missing() { missing + 1 } else { 0 };
        }
        note(no_network(self.addresses));
        std::future::pending().await
    }
}

/// Opens with `open`; while no network leads there, again and again.
async fn once_there_is_a_route<F>(
    waiting: &AtomicUsize,
    mut open: impl FnMut() -> F,
) -> Result<Connection, ConnectError>
where
    F: Future<Output = Result<Connection, ConnectError>>,
{
    loop {
        match open().await {
            Err(ConnectError::NoRoute { .. }) => {
                waiting.fetch_add(1, Ordering::Relaxed);
                sleep(SOON).await;
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
            other => return other,
        }
    }
}

/// One connection over every path. While nobody answers, a path that comes makes it begin anew.
async fn over_all(
    endpoint: &Arc<Endpoint>,
    addresses: &[SocketAddr],
    port: u16,
    routes: &Routes<'_>,
) -> Result<Connection, String> {
    routes.expect(1);
    loop {
        let paths = endpoint.paths_to(addresses).len();
        let more = async {
            while endpoint.paths_to(addresses).len() <= paths {
                sleep(SOON).await;
            }
        };
        let open = || endpoint.connect_to(addresses, port);
        tokio::select! {
            connected = once_there_is_a_route(&routes.waiting, open) => return connected.map_err(|error| explained(&error)),
            () = more => {}
        }
        // It may have been given up while it waited.
        routes.waiting.store(0, Ordering::Relaxed);
    }
}

/// Opens connections to all addresses, each `head_start` after the one before, and takes the first that stands.
async fn first_of(
    endpoint: &Arc<Endpoint>,
    addresses: &[SocketAddr],
    port: u16,
    head_start: std::time::Duration,
    routes: &Routes<'_>,
) -> Result<Connection, String> {
    let mut attempts = JoinSet::new(); // whatever is left of it is broken off with it
    routes.expect(addresses.len());
    for (place, &address) in (0..).zip(addresses) {
        let (endpoint, waiting) = (endpoint.clone(), routes.waiting.clone());
        attempts.spawn(async move {
            sleep(head_start * place).await;
            let connected = once_there_is_a_route(&waiting, || endpoint.connect(address, port)).await;
            connected.map_err(|error| format!("{address}: {}", explained(&error)))
        });
    }
    let mut failures = Vec::new();
    let mut looks = interval(SOON);
    loop {
        tokio::select! {
            attempt = attempts.join_next() => match attempt {
                Some(Ok(Ok(connection))) => {
                    attempts.shutdown().await;
                    return Ok(connection);
                }
                Some(Ok(Err(failure))) => failures.push(failure),
                Some(Err(error)) => failures.push(error.to_string()),
                None => return Err(failures.join("; ")),
            },
            _ = looks.tick() => {}
        }
        routes.expect(attempts.len());
        // All others have failed: an address that no network leads to is not waited for.
        if !failures.is_empty() && routes.are_missing() {
            return Err(failures.join("; "));
        }
    }
}

/// Tickets of receivers and servers look alike.
fn explained(error: &ConnectError) -> String {
    match error {
        ConnectError::Closed(CloseReason::Refused) => format!(
            "{error}; take the ticket of `restp recv` for `restp send`, and that of `restp serve` for `pipe`, `forward` and `tunnel`"
        ),
        other => other.to_string(),
    }
}

/// As they are told to people.
pub fn listed(addresses: &[SocketAddr]) -> String {
    let words: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_the_ticket_of_another_command_is_told_so() {
        let refused = explained(&ConnectError::Closed(CloseReason::Refused));
        assert!(refused.contains("refused") && refused.contains("`restp serve` for `pipe`"));
        let reset = explained(&ConnectError::Closed(CloseReason::Reset));
        assert!(!reset.contains("ticket"), "{reset}");
    }
}

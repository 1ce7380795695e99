//! `restp send`: files and folders to one receiver.

use super::trust::Trust;
use super::visits::Visits;
use super::words::{Receiver, Words};
use super::{GOODBYE, bear, run, std_duration, warn_of_plain};
use crate::address;
use crate::args::Send;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keys;
use crate::output::{Output, span};
use crate::plan;
use crate::progress::Progress;
use crate::qlog;
use crate::transfer::{
    self, Capability, Outcome, SERVICE_PORT, STDIN, SendError, Source, SourceError, Ticket, Watch,
};
use restp::clock::Clock;
use restp::{
    CloseReason, Composition, ConnectError, Connection, Endpoint, EndpointConfig, Identity, Local, PathMode,
    Security,
};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Head start of each address over the next one (RFC 8305 §8).
const HEAD_START: std::time::Duration = std::time::Duration::from_millis(250);

/// Who waits longer for an answer is told what for.
const SOON: std::time::Duration = std::time::Duration::from_millis(500);

/// Sends what is named.
///
/// # Errors
/// Exit code 2 for what can be said before anything is sent, 1 for everything after.
pub fn execute(arguments: &Send, output: Output) -> Result<(), Failure> {
    let patience = plan::timeout(&arguments.timeout)?;
    let Words { paths, to } = Words::of(&arguments.words)?;
    let addresses = addresses(arguments, &to)?;
    let several = asks_for_several(arguments, &to, &addresses);
    let composition = plan::checked(composition(arguments, several, patience)?)?;
    transfer::check_fitness(&composition).map_err(Failure::input)?;
    let early = composition.establishment.is_opportunistic();
    let all_paths = composition.paths != PathMode::Single;
    if several && !all_paths {
        crate::output::note(
            "this profile uses one path: the first that works (choose paths = spreading for all of them)",
        );
    }
    let config = EndpointConfig::new(composition);
    let trust = Trust::of(arguments, &to, &addresses)?;
    let security = security(arguments, &trust)?;
    let traces = qlog::Folder::of(&arguments.qlog)?;
    let limit = arguments.limit.as_deref().map(plan::limit).transpose()?;
    let reads_stdin = paths.iter().any(|path| path.as_os_str() == STDIN);
    let source = Source::open(&paths, &arguments.name).map_err(Failure::input)?;
    let visits = early.then(Visits::of_user).flatten();
    let outcome = run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = Arc::new(bind(&arguments.bind, &addresses, config, security)?);
        trust.tell(&endpoint);
        if let Some(traces) = &traces
            && let Some(observer) = traces.observer(&source.manifest().title(), true)
        {
            endpoint.observe(observer);
        }
        if let Some(visits) = &visits {
            visits.tell(&endpoint);
        }
        let plan = Plan {
            addresses,
            visits: visits.as_ref(),
            tickets: to.into_iter().map(|receiver| receiver.ticket).collect(),
            paths: &paths,
            name_of_stdin: &arguments.name,
            reads_stdin,
            limit,
            all_paths,
            patience,
            output,
        };
        let result = tokio::select! {
            result = plan.deliver(&endpoint, source) => result,
            failure = trust.doubt(&endpoint) => Err(failure),
            () = interrupt.wait() => Err(Failure::operation("interrupted; the same command goes on with it")),
        };
        let result = result.map_err(|failure| trust.explain(&endpoint).unwrap_or(failure));
        trust.report();
        if let Some(visits) = &visits {
            visits.keep(&endpoint, result.as_ref().ok());
        }
        // After a success both sides have ended, and the receiver waits for late repeats. Otherwise the connection has
        // just been broken off, and the receiver is to hear of it.
        if let (Err(_), Some(endpoint)) = (&result, Arc::into_inner(endpoint)) {
            let _ = timeout(GOODBYE, endpoint.close()).await;
        }
        result
    })?;
    traces.as_ref().map_or(Ok(()), qlog::Folder::finish)?;
    output.result(&outcome, Outcome::to_string)
}

fn addresses(arguments: &Send, to: &[Receiver]) -> Result<Vec<SocketAddr>, Failure> {
    if arguments.address.is_empty() {
        let addresses = to.iter().flat_map(|receiver| receiver.ticket.addresses());
        return Ok(addresses.copied().collect());
    }
    let mut addresses = Vec::new();
    for word in &arguments.address {
        let found = address::to_send_to(word);
        addresses.extend(found.map_err(|why| Failure::input(format!("--address {why}")))?);
    }
    Ok(addresses)
}

/// What the connection is made of. Several paths imply what their preset chooses, unless `--set` contradicts it.
fn composition(arguments: &Send, several: bool, patience: Duration) -> Result<Composition, Failure> {
    let over = |base| {
        plan::composition(base, &arguments.composition, |composition| {
            bear(composition, patience)
        })
    };
    if several {
        let implied = over(plan::over_several_paths()?)?;
        if implied.clone().check().is_ok() {
            return Ok(implied);
        }
    }
    over(Composition::default())
}

/// Did the user name more than one path?
fn asks_for_several(arguments: &Send, to: &[Receiver], addresses: &[SocketAddr]) -> bool {
    let interface = |local: &Local| !matches!(local, Local::Address(_));
    let several_here = arguments.bind.len() > 1 || arguments.bind.iter().any(interface);
    let there = if arguments.address.is_empty() {
        to.len() > 1 || to.iter().any(|receiver| receiver.ticket.has_paths())
    } else {
        true
    };
    several_here || (there || !arguments.bind.is_empty()) && addresses.len() > 1
}

/// Sealed under this user's key, unless the user wants neither.
fn security(arguments: &Send, trust: &Trust) -> Result<Security, Failure> {
    if arguments.seal.plain {
        warn_of_plain();
        return Ok(Security::Plain);
    }
    let secret = keys::identity(arguments.seal.key.as_deref())?;
    Ok(Security::Sealed(Identity {
        trust: trust.policy(),
        ..Identity::of(secret)
    }))
}

fn bind(
    from: &[Local],
    to: &[SocketAddr],
    config: EndpointConfig,
    security: Security,
) -> Result<Endpoint, Failure> {
    if !from.is_empty() {
        return Endpoint::bind_with(from, config, security).map_err(|error| {
            let list: Vec<_> = from.iter().map(Local::to_string).collect();
            Failure::input(format!(
                "--bind {}: {error}; name addresses or interfaces of this host",
                list.join(", ")
            ))
        });
    }
    let mut local: Vec<Local> = Vec::new();
    if to.iter().any(SocketAddr::is_ipv4) {
        local.push(Local::Address((Ipv4Addr::UNSPECIFIED, 0).into()));
    }
    if to.iter().any(SocketAddr::is_ipv6) {
        local.push(Local::Address((Ipv6Addr::UNSPECIFIED, 0).into()));
    }
    Endpoint::bind_with(&local, config, security)
        .map_err(|error| Failure::operation(format!("no socket: {error}")))
}

/// How files are to get there.
struct Plan<'a> {
    addresses: Vec<SocketAddr>,
    /// What earlier ones left.
    visits: Option<&'a Visits>,
    tickets: Vec<Ticket>,
    paths: &'a [PathBuf],
    name_of_stdin: &'a str,
    /// What is read there is gone: nothing begins again.
    reads_stdin: bool,
    limit: Option<Rate>,
    /// One connection over every path, or one over the first that works.
    all_paths: bool,
    patience: Duration,
    output: Output,
}

impl Plan<'_> {
    /// As often as the receiver starts again in the middle: it knows nothing of the connection then, and says what it has of the files.
    async fn deliver(&self, endpoint: &Arc<Endpoint>, mut source: Source) -> Result<Outcome, Failure> {
        loop {
            let forgotten = endpoint.seal_stats().resets;
            let result = self.attempt(endpoint, source).await;
            if result.is_ok() || self.reads_stdin || endpoint.seal_stats().resets == forgotten {
                return result;
            }
            crate::output::note("the receiver has started again; going on with what it has");
            source = self.open().map_err(Failure::input)?;
        }
    }

    fn open(&self) -> Result<Source, SourceError> {
        Source::open(self.paths, self.name_of_stdin)
    }

    /// To the address whose cookie is known the file leaves beside the SYN. While nobody answers there the other
    /// addresses are tried, and the first that stands gets it from the beginning. Several paths race by themselves.
    async fn attempt(&self, endpoint: &Arc<Endpoint>, source: Source) -> Result<Outcome, Failure> {
        let clock = Clock::start();
        let is_known = |address: &&SocketAddr| self.visits.is_some_and(|visits| visits.knows(**address));
        let known = self.addresses.iter().find(is_known).filter(|_| !self.reads_stdin);
        let Some(&first) = known else {
            let connection = self.connect(endpoint, &self.addresses).await?;
            return self.transmit(&connection, source, clock).await;
        };
        let unreachable = |error| Failure::operation(format!("no connection: {first}: {error}"));
        if self.all_paths {
            let early = endpoint
                .open_to(&self.addresses, SERVICE_PORT)
                .map_err(unreachable)?;
            return self
                .transmit_early(endpoint, &early, &self.addresses, source, clock)
                .await;
        }
        let others = self.addresses.iter().copied().filter(|other| *other != first);
        let others: Vec<_> = others.collect();
        let early = endpoint.open(first, SERVICE_PORT).map_err(unreachable)?;
        let there = [first];
        let elsewhere = async {
            let silent = timeout(HEAD_START, early.established()).await.is_err();
            match others.as_slice() {
                [_, ..] if silent => self.connect(endpoint, &others).await.ok(),
                _ => None,
            }
        };
        let instead = tokio::select! {
            outcome = self.transmit_early(endpoint, &early, &there, source, clock) => return outcome,
            Some(instead) = elsewhere => instead,
        };
        early.abort();
        let again = self.open().map_err(Failure::input)?;
        self.transmit(&instead, again, clock).await
    }

    /// The same over a connection of which is not known yet whether it reaches who is meant.
    async fn transmit_early(
        &self,
        endpoint: &Endpoint,
        early: &Connection,
        remotes: &[SocketAddr],
        source: Source,
        clock: Clock,
    ) -> Result<Outcome, Failure> {
        let stranger = async {
            match endpoint.confirm(early, remotes).await {
                // Why it ended is said of the transfer.
                Ok(()) | Err(ConnectError::Closed(_)) => std::future::pending().await,
                Err(error) => error,
            }
        };
        tokio::select! {
            outcome = self.transmit(early, source, clock) => outcome,
            error = stranger => Err(Failure::operation(error)),
        }
    }

    /// Sends the file over a connection that is open or being opened.
    async fn transmit(
        &self,
        connection: &Connection,
        source: Source,
        clock: Clock,
    ) -> Result<Outcome, Failure> {
        let remote = connection.path().map(|path| path.remote);
        let peer = remote.map_or_else(String::new, |remote| remote.to_string());
        let capability = self.capability(remote);
        let (watch, progress) = (Watch::default(), Progress::new());
        let manifest = source.manifest();
        let line = progress.line(&manifest.title(), manifest.bytes());
        let sent = tokio::select! {
            sent = transfer::send(connection, source, capability, self.limit, &watch) => sent,
            never = watch.run(connection, |look| line.show(look), |news| news.tell(&progress, self.output)) => match never {},
        };
        let seconds = clock.now().since(Time::ZERO).as_secs_f64();
        let tally = sent.map_err(|error| Failure::operation(explain(&error, &peer)))?;
        let outcome = Outcome::new(connection, &watch, seconds, tally);
        // The receiver ends first, so that it is the one that waits for late repeats. The file is there in any case.
        let farewell = async {
            while connection.recv().await.is_some() {}
            connection.finish();
            connection.closed().await
        };
        let _ = timeout(GOODBYE, farewell).await;
        Ok(outcome)
    }

    /// What the ticket of the receiver at `remote` gives: never to another receiver.
    fn capability(&self, remote: Option<SocketAddr>) -> Option<Capability> {
        let named = |ticket: &&Ticket| remote.is_some_and(|remote| ticket.addresses().contains(&remote));
        let only = || self.tickets.first().filter(|_| self.tickets.len() == 1);
        self.tickets.iter().find(named).or_else(only)?.capability()
    }

    /// Waits for a connection to one of `addresses`, or to all, as long as patience lasts.
    async fn connect(
        &self,
        endpoint: &Arc<Endpoint>,
        addresses: &[SocketAddr],
    ) -> Result<Connection, Failure> {
        let tried: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        let tried = tried.join(", ");
        let progress = Progress::new();
        let trying = async {
            tokio::time::sleep(SOON).await;
            let _line = progress.trying(&format!("trying to reach {tried}"));
            std::future::pending::<std::convert::Infallible>().await
        };
        let connected = async {
            if self.all_paths {
                let connected = endpoint.connect_to(addresses, SERVICE_PORT).await;
                connected.map_err(|error| error.to_string())
            } else {
                first_of(endpoint, addresses).await
            }
        };
        let connected = tokio::select! {
            connected = timeout(std_duration(self.patience), connected) => connected,
            never = trying => match never {},
        };
        match connected {
            Ok(connected) => connected.map_err(|why| Failure::operation(format!("no connection: {why}"))),
            Err(_) => Err(Failure::operation(format!(
                "nobody answered at {tried} within {}; {CHECK}",
                span(self.patience)
            ))),
        }
    }
}

/// Opens connections to all addresses, each a little after the one before, and takes the first that stands.
async fn first_of(endpoint: &Arc<Endpoint>, addresses: &[SocketAddr]) -> Result<Connection, String> {
    let mut attempts = JoinSet::new(); // whatever is left of it is broken off with it
    for (place, &address) in (0..).zip(addresses) {
        let endpoint = endpoint.clone();
        attempts.spawn(async move {
            tokio::time::sleep(HEAD_START * place).await;
            let connected = endpoint.connect(address, SERVICE_PORT).await;
            connected.map_err(|error| format!("{address}: {error}"))
        });
    }
    let mut failures = Vec::new();
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(connection)) => {
                attempts.shutdown().await;
                return Ok(connection);
            }
            Ok(Err(failure)) => failures.push(failure),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Err(failures.join("; "))
}

const CHECK: &str = "check that `restp recv` runs there, with or without --plain as here, that the ticket is its latest, and that firewalls let UDP \
                     through to that port (--timeout waits longer)";

fn explain(error: &SendError, peer: &str) -> String {
    match error {
        SendError::Connection(CloseReason::TimedOut(silence)) => format!(
            "the receiver at {peer} has not answered for {}; check that `restp recv` still runs there and that \
             the network is up, then send again (--timeout bears longer outages)",
            span(*silence)
        ),
        SendError::Connection(CloseReason::Reset) => {
            format!("the receiver at {peer} broke the transfer off; look at what it says, then send again")
        }
        SendError::Connection(CloseReason::Finished) => {
            format!("the receiver at {peer} ended the connection without a verdict; send again")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(address: &[&str]) -> Send {
        Send {
            words: Vec::new(),
            name: "stdin".into(),
            limit: None,
            address: address.iter().map(|text| (*text).to_owned()).collect(),
            bind: Vec::new(),
            seal: Default::default(),
            composition: Default::default(),
            qlog: Default::default(),
            timeout: "30 s".into(),
        }
    }

    #[test]
    fn addresses_replace_those_of_the_ticket() {
        let to = ["127.0.0.1:1", "127.0.0.1:2"].map(|word| Receiver::of(word).expect("one"));
        let both = addresses(&arguments(&[]), &to).expect("addresses");
        assert_eq!(both.len(), 2);
        let replaced = addresses(&arguments(&["127.0.0.1:3"]), &to).expect("addresses");
        assert_eq!(replaced, ["127.0.0.1:3".parse().expect("an address")]);
        assert!(addresses(&arguments(&["no address"]), &to).is_err());
    }

    #[test]
    fn several_paths_imply_their_preset_unless_something_else_is_said() {
        let made_of = |profile: Option<&str>, set: &[&str], several: bool| {
            let mut arguments = arguments(&[]);
            arguments.composition.profile = profile.map(str::to_owned);
            arguments.composition.set = set.iter().map(|text| (*text).to_owned()).collect();
            let composition = composition(&arguments, several, Duration::from_secs(30));
            composition
                .expect("understood")
                .check()
                .expect("valid")
                .services()
        };
        let has = |services: &[(&str, String, &str)], key: &str, choice: &str| {
            services
                .iter()
                .any(|(name, value, _)| *name == key && value == choice)
        };
        let implied = made_of(None, &[], true);
        for (key, choice) in [
            ("paths", "spreading"),
            ("scheduling", "guard"),
            ("congestion", "bbr"),
        ] {
            assert!(has(&implied, key, choice), "{implied:?}");
        }
        let changed = made_of(None, &["congestion=cubic"], true);
        assert!(has(&changed, "congestion", "cubic") && has(&changed, "scheduling", "guard"));
        let default = made_of(None, &[], false);
        for contradicted in [
            made_of(Some("default"), &[], true),
            made_of(None, &["paths=single"], true),
        ] {
            assert_eq!(contradicted, default);
        }
    }

    #[test]
    fn several_paths_are_used_when_they_are_named() {
        let own: Vec<SocketAddr> = ["10.0.0.1:5", "10.0.1.1:5"]
            .map(|text| text.parse().expect("an address"))
            .to_vec();
        let (guesses, paths) = (
            Ticket::new(own.clone()).to_string(),
            Ticket::of_paths(own).to_string(),
        );
        let asks = |to: &[&str], address: &[&str], bind: &[&str]| {
            let mut arguments = arguments(address);
            arguments.bind = bind.iter().map(|word| word.parse().expect("a local")).collect();
            let to: Vec<_> = to.iter().map(|word| Receiver::of(word).expect("one")).collect();
            let addresses = addresses(&arguments, &to).expect("addresses");
            asks_for_several(&arguments, &to, &addresses)
        };
        assert!(!asks(&["10.0.0.1:5"], &[], &[]));
        assert!(
            !asks(&[&guesses], &[], &[]),
            "a receiver at every address is tried at each of them"
        );
        assert!(asks(&[&paths], &[], &[]));
        assert!(!asks(&[&paths], &["10.0.0.9:5"], &[]), "replaced by one");
        assert!(asks(&[&guesses], &["10.0.0.9:5", "10.0.0.8:5"], &[]));
        assert!(asks(&["10.0.0.1:5", "10.0.1.1:5"], &[], &[]));
        assert!(!asks(&["10.0.0.1:5"], &[], &["10.0.0.2"]));
        assert!(asks(&["10.0.0.1:5"], &[], &["10.0.0.2", "10.0.1.2"]));
        assert!(asks(&[&guesses], &[], &["10.0.0.2"]));
        assert!(asks(&["10.0.0.1:5"], &[], &["all"]) && asks(&["10.0.0.1:5"], &[], &["eth0"]));
    }
}

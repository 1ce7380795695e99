//! `restp send`: files and folders to one receiver.

use super::resumption_cache::ResumptionCache;
use super::trust::Trust;
use super::words::Words;
use super::{GOODBYE, dial, reach, run};
use crate::args::Send;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::links::{self, Use};
use crate::monitor::Monitor;
use crate::output::{Output, span};
use crate::plan;
use crate::progress::Progress;
use crate::qlog;
use crate::stdin;
use crate::transfer::{
    self, Capability, Introduction, Outcome, SERVICE_PORT, STDIN, Selection, SendError, Source, SourceError,
    Ticket, Unsendable, Watch,
};
use restp::clock::Clock;
use restp::{CloseReason, ConnectError, Connection, Endpoint, EndpointConfig, PathMode};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::timeout;

/// Sends what is named.
///
/// # Errors
/// Exit code 2 for what can be said before anything is sent, 1 for everything after.
pub fn execute(arguments: &Send, output: Output) -> Result<(), Failure> {
    let user_timeout = plan::timeout(&arguments.timeout)?;
    let Words { paths, to } = Words::of(&arguments.words)?;
    let addresses = dial::addresses(&arguments.link, &to)?;
    let locals = links::locals(Use::Send, &arguments.link, &addresses)?;
    let several = dial::asks_for_several(&arguments.link, &locals, &to, &addresses);
    let composition = plan::checked(dial::composition(&arguments.link, several, user_timeout, |_| {})?)?;
    transfer::check_fitness(&composition).map_err(Failure::input)?;
    let early = composition.establishment.is_opportunistic();
    let all_paths = composition.paths != PathMode::Single;
    if several && !all_paths {
        crate::output::note(
            "this profile uses one path: the first that works (choose paths = spreading for all of them)",
        );
    }
    let config = EndpointConfig::new(composition);
    let trust = Trust::of(&arguments.link, &to, &addresses)?;
    let security = dial::security(&arguments.link, &trust)?;
    let traces = arguments.qlog.folder()?;
    let limit = arguments.limit.as_deref().map(plan::limit).transpose()?;
    let reads_stdin = paths.iter().any(|path| path.as_os_str() == STDIN);
    if reads_stdin {
        stdin::is_read_from_now();
    }
    let selection = Selection {
        unsendable: if arguments.skip {
            Unsendable::LeftOut
        } else {
            Unsendable::Refused
        },
        excluded: arguments.exclude.clone(),
    };
    let source = Source::open(&paths, &arguments.name, &selection).map_err(unsent)?;
    let mut left_out: Vec<String> = source.left_out().iter().map(ToString::to_string).collect();
    for one in &left_out {
        crate::output::note(format!("left out: {one}"));
    }
    let cache = early.then(ResumptionCache::of_user).flatten();
    let outcome = run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = Arc::new(dial::bind(&locals, &addresses, config, security)?);
        trust.tell(&endpoint);
        dial::expect_relays(&endpoint, &to);
        let _monitor = Monitor::start(
            "send",
            vec![Box::new(endpoint.overview())],
            &arguments.link.monitor,
        )?;
        if let Some(traces) = &traces
            && let Some(observer) = traces.observer(&source.manifest().title(), true)
        {
            endpoint.observe(observer);
        }
        if let Some(cache) = &cache {
            cache.tell(&endpoint);
        }
        let plan = Plan {
            addresses,
            cache: cache.as_ref(),
            tickets: to.into_iter().map(|receiver| receiver.ticket).collect(),
            paths: &paths,
            name_of_stdin: &arguments.name,
            selection: &selection,
            reads_stdin,
            limit,
            all_paths,
            user_timeout,
            output,
        };
        let result = tokio::select! {
            result = plan.deliver(&endpoint, source) => result,
            failure = trust.doubt(&endpoint, user_timeout) => Err(failure),
            () = interrupt.wait() => Err(Failure::operation("interrupted; the same command goes on with it")),
        };
        let result = result.map_err(|failure| trust.explain(&endpoint).unwrap_or(failure));
        trust.report();
        if let Some(cache) = &cache {
            cache.keep(&endpoint, result.as_ref().ok());
        }
        // After a success both sides have ended, and the receiver waits for late retransmissions. Otherwise the connection has
        // just been broken off, and the receiver is to hear of it.
        if let (Err(_), Some(endpoint)) = (&result, Arc::into_inner(endpoint)) {
            let _ = timeout(GOODBYE, endpoint.close()).await;
        }
        result
    })?;
    traces.as_ref().map_or(Ok(()), qlog::Folder::finish)?;
    for one in &outcome.left_out {
        crate::output::note(format!("left out: {one}"));
    }
    left_out.extend_from_slice(&outcome.left_out);
    let sent = Sent {
        outcome: &outcome,
        left_out: arguments.skip.then_some(left_out),
    };
    output.result(&sent, |sent| sent.outcome.to_string())
}

/// Before a receiver that has started again is asked once more; each time twice as long, up to the longest.
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
const LONGEST_PAUSE: std::time::Duration = std::time::Duration::from_secs(10);

/// How files are to get there.
struct Plan<'a> {
    addresses: Vec<SocketAddr>,
    /// What earlier ones left.
    cache: Option<&'a ResumptionCache>,
    tickets: Vec<Ticket>,
    paths: &'a [PathBuf],
    name_of_stdin: &'a str,
    selection: &'a Selection,
    /// What is read there is gone: nothing begins again.
    reads_stdin: bool,
    limit: Option<Rate>,
    /// One connection over every path, or one over the first that works.
    all_paths: bool,
    user_timeout: Duration,
    output: Output,
}

/// What is printed of a transfer.
#[derive(Serialize)]
struct Sent<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// With `--skip`: what was not sent, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<Vec<String>>,
}

/// Nothing was sent, and the way out.
fn unsent(error: SourceError) -> Failure {
    let way_out = match error {
        SourceError::Unsendable { .. } => "; --skip leaves out what cannot be sent, and sends the rest",
        _ => "",
    };
    Failure::input(format!("{error}{way_out}"))
}

impl Plan<'_> {
    /// As often as the receiver starts again in the middle: it knows nothing of the connection then, and says what it has of the files.
    async fn deliver(&self, endpoint: &Arc<Endpoint>, mut source: Source) -> Result<Outcome, Failure> {
        let mut pause = FIRST_PAUSE;
        loop {
            let forgotten = endpoint.seal_stats().resets;
            let result = self.attempt(endpoint, source).await;
            if result.is_ok() || self.reads_stdin || endpoint.seal_stats().resets == forgotten {
                return result;
            }
            crate::output::note("the receiver has started again; going on with what it has");
            // One that fails at the same byte each time must not keep this host busy.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            source = self.open().map_err(Failure::input)?;
        }
    }

    fn open(&self) -> Result<Source, SourceError> {
        Source::open(self.paths, self.name_of_stdin, self.selection)
    }

    /// To the address whose cookie is known the file leaves beside the SYN. While nobody answers there the other
    /// addresses are tried, and the first that stands gets it from the beginning. Several paths race by themselves.
    async fn attempt(&self, endpoint: &Arc<Endpoint>, source: Source) -> Result<Outcome, Failure> {
        let clock = Clock::start();
        let is_known = |address: &&SocketAddr| self.cache.is_some_and(|cache| cache.knows(**address));
        let known = self.addresses.iter().find(is_known).filter(|_| !self.reads_stdin);
        let Some(&first) = known else {
            let connection = self.connect(endpoint, &self.addresses).await?;
            return self.transmit(&connection, source, clock).await;
        };
        let early = match self.all_paths {
            true => endpoint.open_to(&self.addresses, SERVICE_PORT),
            false => endpoint.open(first, SERVICE_PORT),
        };
        let early = match early {
            Ok(early) => early,
            Err(ConnectError::NoRoute { .. }) => {
                let connection = self.connect(endpoint, &self.addresses).await?;
                return self.transmit(&connection, source, clock).await;
            }
            Err(error) => return Err(Failure::operation(format!("no connection: {error}"))),
        };
        if self.all_paths {
            return self
                .transmit_early(endpoint, &early, &self.addresses, source, clock)
                .await;
        }
        let others = self.addresses.iter().copied().filter(|other| *other != first);
        let others: Vec<_> = others.collect();
        let there = [first];
        let elsewhere = async {
            let silent = timeout(reach::HEAD_START, early.established()).await.is_err();
            if others.is_empty() || !silent {
                return None;
            }
            // The others may wait for a network: who answers here meanwhile is not left for one that comes.
            tokio::select! {
                connected = self.connect(endpoint, &others) => connected.ok(),
                Ok(()) = early.established() => None,
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
        let introduction = Introduction {
            capability: self.capability(remote),
            user_timeout: self.user_timeout,
        };
        let (watch, progress) = (Watch::default(), Progress::new());
        let manifest = source.manifest();
        let line = progress.line(&manifest.title(), manifest.bytes());
        let sent = tokio::select! {
            sent = transfer::send(connection, source, introduction, self.limit, &watch) => sent,
            never = watch.run(connection, |look| line.show(look), |news| news.tell(&progress, self.output)) => match never {},
        };
        let seconds = clock.now().since(Time::ZERO).as_secs_f64();
        let tally = sent.map_err(|error| Failure::operation(explain(&error, &peer, watch.silent_for())))?;
        let outcome = Outcome::new(connection, &watch, seconds, tally);
        // The receiver ends first, so that it is the one that waits for late retransmissions. The file is there in any case.
        let farewell = async {
            while connection.recv().await.is_some() {}
            connection.finish();
            connection.closed().await
        };
        let _ = timeout(GOODBYE, farewell).await;
        Ok(outcome)
    }

    async fn connect(
        &self,
        endpoint: &Arc<Endpoint>,
        addresses: &[SocketAddr],
    ) -> Result<Connection, Failure> {
        reach::connect(
            endpoint,
            (addresses, SERVICE_PORT),
            self.all_paths,
            self.user_timeout,
        )
        .await
    }

    /// What the ticket of the receiver at `remote` gives: never to another receiver.
    fn capability(&self, remote: Option<SocketAddr>) -> Option<Capability> {
        let named = |ticket: &&Ticket| remote.is_some_and(|remote| ticket.addresses().contains(&remote));
        let only = || self.tickets.first().filter(|_| self.tickets.len() == 1);
        self.tickets.iter().find(named).or_else(only)?.capability()
    }
}

/// Why a transfer to `peer`, which has not been heard for `silent_for`, has failed.
fn explain(error: &SendError, peer: &str, silent_for: Duration) -> String {
    match error {
        // One whose disk is busy answers questions and takes nothing; one that hears nothing may still be heard.
        SendError::Connection(CloseReason::TimedOut(waited)) if silent_for < *waited / 2 => format!(
            "the receiver at {peer} is heard, but has taken nothing for {}; look whether its disk is busy or packets \
             get through one way only, then send again (--timeout waits longer)",
            span(*waited)
        ),
        SendError::Connection(CloseReason::TimedOut(silence)) => format!(
            "the receiver at {peer} has not answered for {}; check that `restp recv` still runs there and that \
             the network is up, then send again (--timeout bears longer outages)",
            span(*silence)
        ),
        SendError::Connection(CloseReason::Reset) => {
            format!(
                "the receiver at {peer} broke the transfer off: it has ended, or somebody with this key sends the same from elsewhere; look at what it says, then send again"
            )
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

    #[test]
    fn a_receiver_that_is_heard_and_takes_nothing_is_not_called_silent() {
        let waited = Duration::from_secs(30);
        let error = SendError::Connection(CloseReason::TimedOut(waited));
        let said = |seconds| explain(&error, "host", Duration::from_secs(seconds));
        assert!(said(30).contains("has not answered for 30"), "{}", said(30));
        for part in ["is heard", "has taken nothing for 30", "disk", "one way"] {
            assert!(said(5).contains(part), "{}", said(5));
        }
    }
}

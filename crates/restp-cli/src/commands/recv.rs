//! `restp recv`: files and folders from any number of senders.

use super::admission_limit::{AdmissionLimit, MAX_TRANSFERS, Visitor};
use super::beside::{self, Beside, Content, tickets};
use super::mismatch::Mismatch;
use super::words::peer;
use super::{GOODBYE, host, most_open_files, publish, run, std_duration};
use crate::args::Recv;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::monitor::Monitor;
use crate::output::Output;
use crate::plan;
use crate::progress::Progress;
use crate::transfer::{
    self, Arrival, Capability, Folder, Outcome, ReceiveError, Rejection, SERVICE_PORT, Ticket, UserTimeout,
    Watch,
};
use crate::user_timeout::bear;
use restp::clock::{Clock, unix_seconds};
use restp::{Acceptance, Composition, Connection, Endpoint, EndpointConfig};
use restp_base::time::Time;
use serde::Serialize;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

/// Silence of a sender is borne for this long, where neither end says more.
const TIMEOUT: &str = "30 s";

/// Senders told so at once; further ones are broken off without a word.
const MAX_REFUSALS: usize = 64;

/// Receives files.
///
/// # Errors
/// Exit code 2 when it could not begin; 1 when interrupted in the middle of a transfer, or when the one file of
/// `--once` did not arrive.
pub fn execute(arguments: &Recv, output: Output) -> Result<(), Failure> {
    most_open_files();
    let own = plan::timeout(arguments.timeout.as_deref().unwrap_or(TIMEOUT))?;
    let mut folder = Folder::open(&arguments.dir, arguments.overwrite, arguments.fsync).map_err(|error| {
        let dir = arguments.dir.display();
        Failure::input(format!(
            "--dir {dir}: {error}; name a folder that you may write to"
        ))
    })?;
    folder.keep = std_duration(plan::time("--keep", &arguments.keep)?);
    folder.dotfiles = arguments.dotfiles;
    folder.open_to_all = arguments.host.open || arguments.host.seal.plain;
    folder.takes_one = arguments.once;
    let user_timeout = UserTimeout {
        own,
        // Somebody unknown would keep others out.
        follows: arguments.timeout.is_none() && !folder.open_to_all,
    };
    let composition = plan::composition(
        Composition::default(),
        &arguments.host.composition,
        |composition| {
            bear(composition, own);
        },
    )?;
    let composition = plan::checked(composition)?;
    transfer::check_fitness(&composition).map_err(Failure::input)?;
    let config = EndpointConfig::new(composition).listen(SERVICE_PORT, Acceptance::Any);
    let (security, capability) = host::security(&arguments.host, &arguments.host.allow)?;
    let content = Content::open(&arguments.host.content, arguments.host.seal.key.as_deref())?;
    run(async {
        let interrupt = Interrupt::watch()?;
        let endpoint = host::bind(&arguments.host.listen, &config, &security)?;
        let content = content.start(&endpoint)?;
        let _monitor = Monitor::start(
            "recv",
            beside::shown(&endpoint, content.as_ref()),
            &arguments.host.monitor,
        )?;
        let relays = host::register(&arguments.host.relay, &endpoint).await?;
        let ticket = host::ticket(&endpoint, capability.clone(), &relays);
        announce(&ticket, content.as_ref(), &folder, output)?;
        host::show_code(&arguments.host, &ticket);
        let mut server = TransferServer {
            mismatch: Some(Mismatch::of(&endpoint)),
            limit: AdmissionLimit::default(),
            service: Arc::new(Service {
                folder,
                capability,
                user_timeout,
                progress: Progress::new(),
                output,
            }),
            output,
            once: arguments.once,
            transfers: JoinSet::new(),
        };
        let result = server.serve(&endpoint, interrupt).await;
        server.transfers.shutdown().await;
        content.into_iter().for_each(Beside::end);
        endpoint.leave_relays();
        let _ = timeout(GOODBYE, endpoint.close()).await;
        result
    })
}

/// What is printed first.
#[derive(Serialize)]
struct Invitation<'a> {
    ticket: String,
    addresses: Vec<SocketAddr>,
    /// `null` without a seal.
    key: Option<String>,
    /// What is published at the same port.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a publish::Invitation>,
}

fn announce(
    ticket: &Ticket,
    content: Option<&Beside>,
    folder: &Folder,
    output: Output,
) -> Result<(), Failure> {
    let plain = if ticket.key().is_none() { " --plain" } else { "" };
    crate::output::note(format!(
        "receiving into {}; send with: restp send PATH {ticket}{plain}",
        folder.path().display()
    ));
    let invitation = Invitation {
        ticket: ticket.to_string(),
        addresses: ticket.addresses().to_vec(),
        key: ticket.key().map(|key| key.to_string()),
        content: content.and_then(|content| content.invitation.as_ref()),
    };
    output.result(&invitation, |invitation| {
        tickets(&invitation.ticket, invitation.content)
    })
}

/// What every transfer needs.
struct Service {
    folder: Folder,
    /// What a sender must show.
    capability: Option<Capability>,
    user_timeout: UserTimeout,
    progress: Progress,
    output: Output,
}

/// How a transfer ended, and who sent.
struct Departure {
    peer: String,
    visitor: Visitor,
    result: Result<(Arrival, Outcome), ReceiveError>,
}

/// What is printed of a transfer.
#[derive(Serialize)]
struct Received<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// Where the sender is.
    peer: &'a str,
    /// The sender's; `null` without a seal.
    key: Option<String>,
    /// Where each thing is that the sender named.
    places: Vec<String>,
    /// Paths of files that the sender left out on the way.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [String],
}

/// Accepts senders and runs their transfers.
struct TransferServer {
    service: Arc<Service>,
    output: Output,
    once: bool,
    /// None once it has been said.
    mismatch: Option<Mismatch>,
    limit: AdmissionLimit,
    transfers: JoinSet<Departure>,
}

/// Between two looks for senders on the other side of `--plain`.
const LOOK: std::time::Duration = std::time::Duration::from_millis(500);

/// Between two looks for what nobody resumes.
const CLEAN: std::time::Duration = std::time::Duration::from_secs(3600);

impl TransferServer {
    /// Until the one file has come, or the user ends it.
    async fn serve(&mut self, endpoint: &Endpoint, mut interrupt: Interrupt) -> Result<(), Failure> {
        let mut looks = tokio::time::interval(LOOK);
        let mut cleanings = tokio::time::interval(CLEAN);
        loop {
            tokio::select! {
                connection = endpoint.accept() => match connection {
                    Some(connection) => self.admit(connection),
                    None => return Err(Failure::operation("the sockets have failed; start again")),
                },
                Some(departure) = self.transfers.join_next() => {
                    if let Some(last) = self.report_departure(departure)? {
                        return last;
                    }
                }
                _ = looks.tick(), if self.mismatch.is_some() => self.look(endpoint),
                _ = cleanings.tick() => self.clean(),
                () = interrupt.wait() => return self.interrupted(),
            }
        }
    }

    /// Removes what nobody has resumed in time, beside what comes: the folder may be long, or far away.
    fn clean(&self) {
        let service = self.service.clone();
        tokio::task::spawn_blocking(move || {
            let sentence = match service.folder.clean(unix_seconds()) {
                Ok(0) => return,
                Ok(parts) => format!("removed {parts} unfinished files that nobody went on with (--keep)"),
                Err(error) => format!("unfinished files cannot be looked for: {error}"),
            };
            service.progress.note(sentence);
        });
    }

    /// Says once in a run that senders come which are not understood.
    fn look(&mut self, endpoint: &Endpoint) {
        if let Some(sentence) = self.mismatch.and_then(|mismatch| mismatch.sentence(endpoint)) {
            self.service.progress.note(sentence);
            self.mismatch = None;
        }
    }

    fn admit(&mut self, connection: Connection) {
        let service = self.service.clone();
        let visitor = Visitor::of(&connection);
        let is_served = self.limit.take(&visitor);
        if is_served {
            self.transfers
                .spawn(async move { service.receive(&connection, visitor).await });
        } else if self.transfers.len() < MAX_TRANSFERS + MAX_REFUSALS {
            self.transfers
                .spawn(async move { refuse(&connection, Visitor::default()).await });
        }
    }

    /// Reports a transfer. With `--once` the first one that was begun decides how the program ends.
    fn report_departure(
        &mut self,
        departure: Result<Departure, JoinError>,
    ) -> Result<Option<Result<(), Failure>>, Failure> {
        let Departure {
            peer,
            visitor,
            result,
        } = departure.map_err(|error| Failure::operation(error.to_string()))?;
        self.limit.leave(&visitor);
        match result {
            Ok((arrival, outcome)) => {
                let told = self.service.progress.aside(|| {
                    for path in &outcome.left_out {
                        crate::output::note(format!("{peer}: the sender left out {path}"));
                    }
                    for place in &arrival.places {
                        crate::output::note(format!("{peer}: {}", place.display()));
                    }
                    let received = Received {
                        outcome: &outcome,
                        peer: &peer,
                        key: visitor.key().map(|key| key.to_string()),
                        left_out: &outcome.left_out,
                        places: arrival
                            .places
                            .iter()
                            .map(|place| place.display().to_string())
                            .collect(),
                    };
                    self.output
                        .result(&received, |received| received.outcome.to_string())
                });
                if self.once {
                    return Ok(Some(told));
                }
                // Who sends does not suffer because nobody reads any more what came.
                if let Err(failure) = told {
                    let why = if failure.message().is_empty() {
                        "nobody reads standard output any more"
                    } else {
                        failure.message()
                    };
                    self.service
                        .progress
                        .note(format!("{peer}: it came, but is not told: {why}"));
                }
                Ok(None)
            }
            // Whoever knocks and offers nothing useful must not end the program, nor a sender who tries again.
            Err(error @ (ReceiveError::Rejected(_) | ReceiveError::Superseded)) => {
                self.service.progress.note(format!("{peer}: {error}"));
                Ok(None)
            }
            Err(error) if self.once => Ok(Some(Err(Failure::operation(format!("{peer}: {error}"))))),
            Err(error) => {
                self.service.progress.note(format!("{peer}: {error}"));
                Ok(None)
            }
        }
    }

    fn interrupted(&mut self) -> Result<(), Failure> {
        // Those that have ended meanwhile are not unfinished.
        while let Some(departure) = self.transfers.try_join_next() {
            if let Some(last) = self.report_departure(departure)? {
                return last;
            }
        }
        match self.transfers.len() {
            0 if self.once => Err(Failure::operation("interrupted before a file came")),
            0 => Ok(()),
            running => Err(Failure::operation(format!(
                "interrupted; {running} unfinished, nothing of that appears; the same commands go on with it"
            ))),
        }
    }
}

impl Service {
    async fn receive(&self, connection: &Connection, visitor: Visitor) -> Departure {
        let clock = Clock::start();
        let peer = peer(connection);
        let watch = Watch::default();
        let line = OnceLock::new();
        let begun = |name: &str, bytes: Option<u64>| {
            self.progress.note(format!(
                "{peer}: receiving {name}, {}",
                bytes.map_or_else(|| "of unknown size".into(), crate::output::bytes)
            ));
            // The only value it ever gets.
            let _ = line.set(self.progress.line(name, bytes));
        };
        let wanted = (&self.folder, self.capability.as_ref());
        let received = tokio::select! {
            received = transfer::receive(connection, wanted, self.user_timeout, &watch, begun) => received,
            never = watch.run(connection, |look| {
                if let Some(line) = line.get() {
                    line.show(look);
                }
            }, |news| news.tell(&self.progress, self.output)) => match never {},
        };
        let seconds = clock.now().since(Time::ZERO).as_secs_f64();
        let result = match received {
            Ok(arrival) => {
                let outcome = Outcome::new(connection, &watch, seconds, arrival.tally.clone());
                // The verdict is on its way; the sender's end of the connection says that it got there.
                let _ = timeout(std_duration(self.user_timeout.own), connection.closed()).await;
                Ok((arrival, outcome))
            }
            Err(error) => Err(error),
        };
        Departure {
            peer,
            visitor,
            result,
        }
    }
}

async fn refuse(connection: &Connection, visitor: Visitor) -> Departure {
    let busy = Rejection::Busy("the receiver is busy with other transfers; send again later");
    transfer::refuse(connection, &busy).await;
    Departure {
        peer: peer(connection),
        visitor,
        result: Err(busy.into()),
    }
}

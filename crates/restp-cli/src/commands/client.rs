//! A host's way to a server of programs: who it is, and what runs over it.

use super::carrier::{Carrier, Carriers};
use super::trust::Trust;
use super::words::Receiver;
use super::{GOODBYE, dial, run};
use crate::args::{CompositionArgs, LinkArgs};
use crate::datagrams;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::links::{self, Use};
use crate::monitor::Monitor;
use crate::monitor::snapshot::Shown;
use crate::output::note;
use crate::pipe::{self, Operation};
use crate::plan;
use crate::transfer::Capability;
use crate::tunnel;
use crate::user_timeout::bear;
use restp::{Composition, Connection, EndpointConfig, Local, PathMode};
use restp_base::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Who reaches a server.
pub struct Client {
    trust: Trust,
    carriers: Carriers,
    locals: Vec<Local>,
    tasks: Mutex<JoinSet<()>>,
}

/// What goes to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Bytes of TCP connections.
    Streams,
    /// Datagrams, which are of use for so long.
    Datagrams(Option<Duration>),
    /// Packets of IP.
    Packets,
}

/// Runs `work` over what `link` says leads to `server`, until it ends or the user interrupts it, which is `interrupted`.
///
/// # Errors
/// Exit code 2 for what can be said before, 1 for what happens then.
pub fn run_over(
    way: (Use, &LinkArgs),
    server: (&str, &str),
    interrupted: Result<(), Failure>,
    work: impl AsyncFnOnce(&Arc<Client>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run_all(&[Traffic::Streams], way, server, interrupted, async |clients| {
        work(&clients[0]).await
    })
}

/// The same with a client for each kind of traffic, in this order.
///
/// # Errors
/// As [`run_over`].
pub fn run_all(
    traffic: &[Traffic],
    (command, link): (Use, &LinkArgs),
    (server, user_timeout): (&str, &str),
    interrupted: Result<(), Failure>,
    work: impl AsyncFnOnce(&[Arc<Client>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let user_timeout = plan::timeout(user_timeout)?;
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let client =
            |traffic: &Traffic| Client::of(*traffic, (command, link), server, user_timeout).map(Arc::new);
        let clients: Vec<Arc<Client>> = traffic.iter().map(client).collect::<Result<_, _>>()?;
        let Some(first) = clients.first() else {
            return Ok(());
        };
        let overviews = clients.iter().map(|client| client.carriers.endpoint().overview());
        let shown = overviews.map(|overview| Box::new(overview) as Box<dyn Shown>);
        let monitor = Monitor::start(command.name(), shown.collect(), &link.monitor)?;
        let result = tokio::select! {
            biased; // who works may have an end of its own for a signal
            result = work(&clients) => result,
            failure = first.trust.doubt(first.carriers.endpoint(), user_timeout) => Err(failure),
            () = interrupt.wait() => interrupted,
        };
        let explained = |failure| first.trust.explain(first.carriers.endpoint()).unwrap_or(failure);
        let result = result.map_err(explained);
        drop(monitor);
        for client in clients {
            Client::close(client).await;
        }
        result
    })
}

/// What is said where several paths are named, and datagrams take one of them: why, and the way out.
const fn one_path(has_deadline: bool) -> &'static str {
    if has_deadline {
        "datagrams go over one path, the first that answers, as --profile or --set has it; without these they go over all of them"
    } else {
        "datagrams go over one path, the first that answers; with --deadline TIME they go over all of them, as `restp tunnel` and TCP do"
    }
}

/// What datagrams go over: all of several paths where they have a deadline, unless `--profile` or `--set` contradicts that.
fn datagrams_over(
    deadline: Option<Duration>,
    several: bool,
    link: &LinkArgs,
    user_timeout: Duration,
) -> Result<Composition, Failure> {
    let base = datagrams::composition(deadline).map_err(Failure::operation)?;
    let over = |base, arguments: &CompositionArgs| {
        plan::composition(base, arguments, |composition| {
            bear(composition, user_timeout);
        })
    };
    let arguments = &link.composition;
    let mut unsaid = arguments.clone();
    let preset = unsaid
        .profile
        .take_if(|profile| datagrams::in_time(profile).is_some());
    let named = preset.as_deref().and_then(datagrams::in_time);
    let spreads = named.or_else(|| deadline.map(|_| base.clone()));
    if several
        && let Some(spreads) = spreads
        && let Ok(spread) = over(spreads.over_several_paths(), &unsaid)
        && spread.clone().check().is_ok()
    {
        return Ok(spread);
    }
    over(base, arguments)
}

impl Client {
    fn of(
        traffic: Traffic,
        (command, link): (Use, &LinkArgs),
        server: &str,
        user_timeout: Duration,
    ) -> Result<Self, Failure> {
        let to = [Receiver::of(server)?];
        let addresses = dial::addresses(link, &to)?;
        let locals = links::locals(command, link, &addresses)?;
        let several = dial::asks_for_several(link, &locals, &to, &addresses);
        let (composition, port) = match traffic {
            Traffic::Streams => {
                let composition = dial::composition(link, several, user_timeout, pipe::prepare)?;
                pipe::check_fitness(&composition).map_err(Failure::input)?;
                (composition, pipe::SERVICE_PORT)
            }
            Traffic::Datagrams(deadline) => {
                let composition = datagrams_over(deadline, several, link, user_timeout)?;
                datagrams::check_fitness(&composition).map_err(Failure::input)?;
                if several && composition.paths == PathMode::Single {
                    note(one_path(deadline.is_some()));
                }
                (composition, datagrams::SERVICE_PORT)
            }
            Traffic::Packets => {
                let composition = dial::composition(link, several, user_timeout, tunnel::prepare)?;
                tunnel::check_fitness(&composition).map_err(Failure::input)?;
                (composition, tunnel::SERVICE_PORT)
            }
        };
        let composition = plan::checked(composition)?;
        let all_paths = composition.paths != PathMode::Single;
        let trust = Trust::of(link, &to, &addresses)?;
        let security = dial::security(link, &trust)?;
        let config = EndpointConfig::new(composition);
        let endpoint = dial::bind(&locals, &addresses, config, security)?;
        trust.tell(&endpoint);
        dial::expect_relays(&endpoint, &to);
        let capability = to[0].ticket.capability().unwrap_or_else(Capability::none);
        Ok(Client {
            trust,
            carriers: Carriers::new((endpoint, port), addresses, all_paths, user_timeout, capability),
            locals,
            tasks: Mutex::default(),
        })
    }

    /// A connection, with words on whom it tries to reach and who was met.
    ///
    /// # Errors
    /// When nobody answers there, or somebody else.
    pub async fn meet(&self) -> Result<Connection, Failure> {
        let connection = self.carriers.meet().await?;
        self.trust.report();
        Ok(connection)
    }

    /// A carrier, with words on whom it tries to reach and who was met.
    ///
    /// # Errors
    /// When nobody answers there, or somebody else, or the server refuses.
    pub async fn open(&self, operation: Operation) -> Result<Carrier, Failure> {
        if self.carriers.is_met().await {
            return Ok(self.carriers.open(operation).await?);
        }
        let connection = self.meet().await?;
        Ok(self.carriers.open_over(connection, operation).await?)
    }

    /// Where connections to the server come from.
    pub fn carriers(&self) -> &Carriers {
        &self.carriers
    }

    /// Does everything leave by links that are named?
    pub fn is_on_links(&self) -> bool {
        let named = |local: &Local| matches!(local, Local::Interface(_));
        !self.locals.is_empty() && self.locals.iter().all(named)
    }

    /// Does it take every link that comes?
    pub fn is_on_every_link(&self) -> bool {
        self.locals.contains(&Local::Every)
    }

    /// Runs `task` until it ends, or this client is closed.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    async fn close(self: Arc<Self>) {
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        tasks.shutdown().await;
        if let Some(client) = Arc::into_inner(self)
            && let Some(endpoint) = client.carriers.into_endpoint()
        {
            let _ = timeout(GOODBYE, endpoint.close()).await;
        }
    }
}

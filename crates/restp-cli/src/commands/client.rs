//! A host's way to a server of programs: who it is, and what runs over it.

use super::carrier::{Carrier, Carriers};
use super::trust::Trust;
use super::words::Receiver;
use super::{GOODBYE, dial, run};
use crate::args::LinkArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::links::{self, Use};
use crate::monitor::Monitor;
use crate::pipe::Operation;
use crate::plan;
use crate::transfer::{Capability, check_fitness};
use restp::{EndpointConfig, PathMode};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Who reaches a server.
pub struct Client {
    trust: Trust,
    carriers: Carriers,
    _monitor: Monitor,
    tasks: Mutex<JoinSet<()>>,
}

/// Runs `work` over what `link` says leads to `server`, until it ends or the user interrupts it, which is `interrupted`.
///
/// # Errors
/// Exit code 2 for what can be said before, 1 for what happens then.
pub fn run_over(
    (command, link): (Use, &LinkArgs),
    (server, user_timeout): (&str, &str),
    interrupted: Result<(), Failure>,
    work: impl AsyncFnOnce(&Arc<Client>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let client = Arc::new(Client::of((command, link), server, user_timeout)?);
        let result = tokio::select! {
            result = work(&client) => result,
            failure = client.trust.doubt(client.carriers.endpoint()) => Err(failure),
            () = interrupt.wait() => interrupted,
        };
        let result = result.map_err(|failure| {
            client
                .trust
                .explain(client.carriers.endpoint())
                .unwrap_or(failure)
        });
        Client::close(client).await;
        result
    })
}

impl Client {
    fn of((command, link): (Use, &LinkArgs), server: &str, user_timeout: &str) -> Result<Self, Failure> {
        let user_timeout = plan::timeout(user_timeout)?;
        let to = [Receiver::of(server)?];
        let addresses = dial::addresses(link, &to)?;
        let locals = links::locals(command, link, &addresses)?;
        let several = dial::asks_for_several(link, &locals, &to, &addresses);
        let composition = plan::checked(dial::composition(link, several, user_timeout)?)?;
        check_fitness(&composition).map_err(Failure::input)?;
        let all_paths = composition.paths != PathMode::Single;
        let trust = Trust::of(link, &to, &addresses)?;
        let security = dial::security(link, &trust)?;
        let config = EndpointConfig::new(composition);
        let endpoint = dial::bind(&locals, &addresses, config, security)?;
        trust.tell(&endpoint);
        dial::expect_relays(&endpoint, &to);
        let monitor = Monitor::start(command.name(), &endpoint, &link.monitor)?;
        let capability = to[0].ticket.capability().unwrap_or_else(Capability::none);
        Ok(Client {
            trust,
            carriers: Carriers::new(endpoint, addresses, all_paths, user_timeout, capability),
            _monitor: monitor,
            tasks: Mutex::default(),
        })
    }

    /// A carrier, with words on whom it tries to reach and who was met.
    ///
    /// # Errors
    /// When nobody answers there, or somebody else, or the server refuses.
    pub async fn open(&self, operation: Operation) -> Result<Carrier, Failure> {
        let connection = self.carriers.meet().await?;
        self.trust.report();
        Ok(self.carriers.ask(connection, operation).await?)
    }

    /// Where connections to the server come from.
    pub fn carriers(&self) -> &Carriers {
        &self.carriers
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

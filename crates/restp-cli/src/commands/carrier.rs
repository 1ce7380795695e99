//! What carries the bytes of one TCP connection to a server. This is the only place that knows that each has a stream of its own in one
//! association with the server, so that only the first costs a handshake, and none has to learn again what the paths take.

use super::reach::{self, Attempt};
use crate::datagrams::{Message, Open, Operation as DatagramOperation, deadline_of};
use crate::failure::Failure;
use crate::output::{note, span};
use crate::pipe::{self, Answer, Broken, Operation, Refusal, Request};
use crate::transfer::{Capability, Inlet};
use bytes::Bytes;
use restp::{BiStream, CloseReason, Connection, Endpoint};
use restp_base::time::Duration;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Head start of the address that answered before over the others: longer than a round trip on Earth takes, lost packets included.
const HEAD_START_OF_KNOWN: std::time::Duration = std::time::Duration::from_secs(5);

/// Until a request for datagrams is said again at first: longer than most round trips; then twice as long each time.
const FIRST_WAIT: std::time::Duration = std::time::Duration::from_millis(300);

/// Until it is given up: longer than the server itself takes for it.
const ANSWER_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// Who waits longer for an answer is told, once until one comes: a target may take a while, but nobody looks at a blank screen for ever.
const QUIET: std::time::Duration = std::time::Duration::from_secs(5);

/// Where carriers come from.
pub struct Carriers {
    endpoint: Arc<Endpoint>,
    /// Of the service.
    port: u16,
    /// The one that answered last comes first.
    addresses: Mutex<Vec<SocketAddr>>,
    all_paths: bool,
    user_timeout: Duration,
    capability: Capability,
    /// Of all streams. Who makes it keeps the others waiting, so that one is made.
    association: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// That the server is silent has been said.
    is_silent: AtomicBool,
    attempts: Mutex<Attempts>,
}

/// Attempts to reach the server again, which those who wait for it share.
#[derive(Default)]
struct Attempts {
    /// How many have begun.
    begun: u64,
    /// Which one failed last, and why.
    failed: Option<(u64, String)>,
}

/// A server that is asked for a target says within 35 s that there is no way to it; later, where the connection bears an outage. So who
/// asks has so long, or his `--timeout`.
const ANSWER: std::time::Duration = std::time::Duration::from_secs(45);

/// Why there is no carrier.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The server was not reached, or left.
    #[error("{0}")]
    Unreached(String),
    /// It refuses.
    #[error("the server refused: {0}")]
    Refused(Refusal),
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Failure::operation(error)
    }
}

impl Carriers {
    /// From the service `port` of the server at `addresses`, to which `capability` is shown.
    pub fn new(
        (endpoint, port): (Endpoint, u16),
        addresses: Vec<SocketAddr>,
        all_paths: bool,
        user_timeout: Duration,
        capability: Capability,
    ) -> Self {
        Carriers {
            endpoint: Arc::new(endpoint),
            port,
            addresses: Mutex::new(addresses),
            all_paths,
            user_timeout,
            capability,
            association: tokio::sync::Mutex::default(),
            is_silent: AtomicBool::new(false),
            attempts: Mutex::default(),
        }
    }

    /// What all of them run over.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The same, if nobody else holds it any more.
    pub fn into_endpoint(self) -> Option<Endpoint> {
        Arc::into_inner(self.endpoint)
    }

    /// Waits until the server answers, and says whom it tries to reach.
    ///
    /// # Errors
    /// When nobody answers there, or somebody else.
    pub async fn meet(&self) -> Result<Connection, Failure> {
        let addresses = self.addresses();
        let places = (&addresses[..], self.port);
        let connection = reach::connect(&self.endpoint, places, self.all_paths, self.user_timeout).await?;
        self.remember(&connection);
        Ok(connection)
    }

    /// Asks the server for `operation`.
    ///
    /// # Errors
    /// When the association that stands is given up, which takes the user timeout, and none is made within another; or the server refuses.
    pub async fn open(&self, operation: Operation) -> Result<Carrier, OpenError> {
        let mut opening = pin!(self.open_in_time(operation));
        if let Ok(opened) = timeout(QUIET, &mut opening).await {
            self.is_silent.store(false, Ordering::Relaxed);
            return opened;
        }
        if !self.is_silent.swap(true, Ordering::Relaxed) {
            note(format!(
                "no answer from the server for {} s; connections wait for it, at most twice the {} of --timeout",
                QUIET.as_secs(),
                span(self.user_timeout)
            ));
        }
        opening.await
    }

    async fn open_in_time(&self, operation: Operation) -> Result<Carrier, OpenError> {
        let before = self.attempts().begun;
        let standing = self.association.lock().await.clone();
        if let Some(connection) = &standing {
            match self.ask(connection.clone(), &operation).await {
                // The server started again or ends it, or it was lost and nobody has noticed until now.
                Err(OpenError::Unreached(_)) => {}
                asked => return asked,
            }
        }
        let connection = self.associate(standing.as_ref(), before).await?;
        self.ask(connection, &operation).await
    }

    /// The association that stands, or a new one in the place of `tried`, which does not answer. The streams that it has keep it.
    ///
    /// Who came when so many attempts as `before` had begun makes none of his own where a later one has failed: the timeout would be over
    /// once for each of those who wait, one behind the other.
    async fn associate(
        &self,
        tried: Option<&Arc<Connection>>,
        before: u64,
    ) -> Result<Arc<Connection>, OpenError> {
        let mut association = self.association.lock().await;
        if let Some(connection) = &*association
            && !tried.is_some_and(|tried| Arc::ptr_eq(tried, connection))
            && pipe::over(connection).await.is_none()
        {
            return Ok(connection.clone());
        }
        let attempt = {
            let mut attempts = self.attempts();
            if let Some((_, why)) = attempts.failed.as_ref().filter(|(failed, _)| *failed > before) {
                return Err(OpenError::Unreached(why.clone()));
            }
            attempts.begun += 1;
            attempts.begun
        };
        match self.reach().await {
            Ok(connection) => Ok(association.insert(Arc::new(connection)).clone()),
            Err(error) => {
                self.attempts().failed = Some((attempt, error.to_string()));
                Err(error)
            }
        }
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has there been an association yet?
    pub async fn is_met(&self) -> bool {
        self.association.lock().await.is_some()
    }

    /// The same over `connection`, which is that of all streams from now on.
    ///
    /// # Errors
    /// As [`Carriers::open`].
    pub async fn open_over(
        &self,
        connection: Connection,
        operation: Operation,
    ) -> Result<Carrier, OpenError> {
        let connection = Arc::new(connection);
        *self.association.lock().await = Some(connection.clone());
        self.ask(connection, &operation).await
    }

    /// Waits until the server has everything that was written.
    ///
    /// # Errors
    /// When the association ends before.
    pub async fn finish(&self) -> Result<(), Broken> {
        let Some(connection) = self.association.lock().await.take() else {
            return Ok(());
        };
        connection.finish();
        match connection.closed().await {
            CloseReason::Finished => Ok(()),
            reason => Err(Broken::Connection(reason)),
        }
    }

    async fn reach(&self) -> Result<Connection, OpenError> {
        let addresses = self.addresses();
        let attempt = if self.all_paths {
            Attempt::AllPaths
        } else {
            Attempt::Each(HEAD_START_OF_KNOWN)
        };
        let places = (&addresses[..], self.port);
        let connection = reach::reach(&self.endpoint, places, attempt, self.user_timeout).await;
        let connection = connection.map_err(|failure| OpenError::Unreached(failure.message().into()))?;
        self.remember(&connection);
        Ok(connection)
    }

    async fn ask(&self, connection: Arc<Connection>, operation: &Operation) -> Result<Carrier, OpenError> {
        let Ok(stream) = connection.open_stream().await else {
            return Err(unreached(&connection).await);
        };
        let request = Request {
            capability: self.capability.clone(),
            operation: operation.clone(),
        };
        // Without it there is no answer either.
        let _ = stream.send(request.encode().into()).await;
        let mut inlet = Inlet::new(&stream);
        let user_timeout = std::time::Duration::from_nanos(self.user_timeout.as_nanos());
        let Ok(answer) = timeout(ANSWER.max(user_timeout), Answer::read(&mut inlet)).await else {
            return Err(OpenError::Unreached("the server does not answer".to_owned()));
        };
        let rest = inlet.into_rest();
        match answer {
            Some(Answer::Accepted(said)) => Ok(Carrier {
                connection,
                stream,
                rest,
                said,
            }),
            Some(Answer::Refused(refusal)) => Err(OpenError::Refused(refusal)),
            None => Err(unreached(&connection).await),
        }
    }

    /// A connection for datagrams of `operation` at `place`, and where the server listens.
    ///
    /// # Errors
    /// As [`Carriers::open`].
    pub async fn open_datagrams(
        &self,
        operation: DatagramOperation,
        place: &str,
    ) -> Result<(Connection, String), OpenError> {
        let connection = self.reach().await?;
        self.ask_datagrams(connection, operation, place).await
    }

    /// The same over `connection`. The request is repeated until it is answered: messages may be lost.
    ///
    /// # Errors
    /// When the server leaves, does not answer or refuses.
    pub async fn ask_datagrams(
        &self,
        connection: Connection,
        operation: DatagramOperation,
        place: &str,
    ) -> Result<(Connection, String), OpenError> {
        let composition = connection.composition();
        let open = Message::Open(Open {
            capability: self.capability.clone(),
            deadline: composition.and_then(|composition| deadline_of(&composition)),
            operation,
            place: place.to_owned(),
        });
        let answered = async {
            let mut wait = FIRST_WAIT;
            loop {
                let _ = connection.send(open.encode()).await;
                match timeout(wait, answer(&connection)).await {
                    Ok(answer) => return answer,
                    Err(_) => wait *= 2,
                }
            }
        };
        match timeout(ANSWER_TIME, answered).await {
            Ok(Some(Answer::Accepted(said))) => Ok((connection, said)),
            Ok(Some(Answer::Refused(refusal))) => {
                connection.finish();
                Err(OpenError::Refused(refusal))
            }
            Ok(None) => {
                connection.abort();
                let reason = connection.closed().await;
                Err(OpenError::Unreached(format!("the server: {reason}")))
            }
            Err(_) => Err(OpenError::Unreached(
                "the server did not answer what was asked for".into(),
            )),
        }
    }

    /// Where the server is.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.clone()
    }

    fn remember(&self, connection: &Connection) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let remote = connection.path().map(|path| path.remote);
        addresses.sort_by_key(|address| Some(*address) != remote);
    }
}

/// The next answer; none: the connection is over.
async fn answer(connection: &Connection) -> Option<Answer> {
    loop {
        if let Some(Message::Answer(answer)) = Message::decode(&connection.recv().await?) {
            return Some(answer);
        }
    }
}

async fn unreached(connection: &Connection) -> OpenError {
    OpenError::Unreached(match pipe::over(connection).await {
        Some(CloseReason::Reset) => "the server broke off the connection; look at what it says: it may have as many as it takes, which \
                                     `restp serve --max-connections` changes"
            .into(),
        Some(reason) => format!("the server: {reason}"),
        None => "the server does not answer what was asked for; use the same release of restp on both sides"
            .into(),
    })
}

/// What carries bytes both ways. Dropped, it breaks off.
pub struct Carrier {
    connection: Arc<Connection>,
    stream: BiStream,
    /// What came behind the answer.
    rest: Bytes,
    said: String,
}

impl Carrier {
    /// What the server said when it accepted.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// What the server sends.
    pub fn inlet(&self) -> Inlet<'_, BiStream> {
        Inlet::after(&self.stream, self.rest.clone())
    }

    /// Carries bytes both ways until both have ended.
    ///
    /// # Errors
    /// When either end breaks off.
    pub async fn join(self, from: impl AsyncRead + Unpin, to: impl AsyncWrite + Unpin) -> Result<(), Broken> {
        pipe::join(&self.connection, (&self.stream, self.rest), from, to).await
    }

    /// The same with a TCP connection, which ends as the peer's does.
    ///
    /// # Errors
    /// As [`Carrier::join`].
    pub async fn join_tcp(self, tcp: TcpStream) -> Result<(), Broken> {
        pipe::join_tcp(&self.connection, (&self.stream, self.rest), tcp).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::SERVICE_PORT;
    use restp::{Composition, EndpointConfig, Trust};
    use tokio::task::JoinSet;

    /// Each had a timeout of his own, one behind the other.
    #[tokio::test]
    async fn those_who_wait_for_a_server_share_the_attempts_to_reach_it() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let config = EndpointConfig::new(Composition::default().check().expect("valid"));
        let here = "127.0.0.1:0".parse().expect("an address");
        let endpoint = Endpoint::bind(here, config, Trust::Anybody).expect("a socket");
        let carriers = Arc::new(Carriers::new(
            (endpoint, SERVICE_PORT),
            vec![silent.local_addr().expect("bound")],
            false,
            Duration::from_millis(300),
            Capability::none(),
        ));
        let all_fail = async || {
            let mut waiting = JoinSet::new();
            for _ in 0..50 {
                let carriers = carriers.clone();
                waiting.spawn(async move { carriers.open(Operation::Connect(String::new())).await.is_err() });
            }
            assert!(waiting.join_all().await.into_iter().all(|failed| failed));
        };
        // Who comes while one runs shares the next one.
        all_fail().await;
        let begun = carriers.attempts().begun;
        assert!((1..=2).contains(&begun), "{begun}");
        // Nobody takes the failure of others before him for his.
        all_fail().await;
        assert!(carriers.attempts().begun > begun);
    }
}

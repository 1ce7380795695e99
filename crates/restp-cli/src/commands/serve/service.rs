//! One who connects: what he asks for, whether that is allowed, and the bytes.

use super::super::GOODBYE;
use super::super::admission_limit::{AdmissionLimit, Visitor};
use super::super::words::peer;
use super::listeners::Listeners;
use super::pending::{Admission, PendingAssociations};
use super::pool::Pool;
use crate::datagrams;
use crate::output::note;
use crate::pipe::{self, AllowList, Answer, Broken, Operation, Place, Refusal, Request, target};
use crate::subnet::Subnet;
use crate::transfer::{Capability, Inlet};
use crate::tunnel;
use bytes::Bytes;
use restp::tun::Tun;
use restp::{BiStream, Composition, Connection, ReplySocket};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Who connects asks for something within this time, and a target answers within it.
pub const SOON: Duration = Duration::from_secs(30);

/// A stream waits so long for a place: clients count what they have open, and the end of one may come behind the beginning of the next.
const PLACE_TIME: Duration = Duration::from_secs(5);

/// What is said when there is no place.
pub const FULL: &str =
    "as many connections are open there as it takes; `restp serve --max-connections` allows more";

/// What this host offers.
pub struct Service {
    allowed: AllowList,
    /// What who connects must show.
    capability: Option<Capability>,
    pending: PendingAssociations,
    /// Of streams that carry a TCP connection.
    limit: Mutex<AdmissionLimit>,
    /// One of them was left.
    left: Notify,
    /// Of other streams: a client must be able to fill its share with connections beside its listeners.
    others: Mutex<AdmissionLimit>,
    listeners: Listeners,
    sockets: Pool<ReplySocket>,
    devices: Pool<Tun>,
}

impl Service {
    /// Offers what is `allowed` to those who show `capability`, in so many streams at once.
    pub fn new(allowed: AllowList, capability: Option<Capability>, most_streams: usize) -> Self {
        Service {
            allowed,
            capability,
            pending: PendingAssociations::default(),
            limit: Mutex::new(AdmissionLimit::at_most(most_streams)),
            left: Notify::new(),
            others: Mutex::new(AdmissionLimit::at_most(most_streams)),
            listeners: Listeners::default(),
            sockets: Pool::default(),
            devices: Pool::default(),
        }
    }

    /// Serves one connection of `visitor` until it is over.
    pub async fn serve(self: &Arc<Self>, connection: Connection, visitor: Visitor) {
        // What the composition delivers says which service was come for.
        let composition = connection.composition();
        let is = |carries: fn(&Composition) -> Result<(), String>| {
            let composition = composition.as_ref();
            composition.is_some_and(|composition| carries(composition).is_ok())
        };
        if is(datagrams::check_fitness) {
            self.serve_datagrams(&connection).await;
        } else if is(tunnel::check_fitness) {
            self.serve_tunnel(&connection).await;
        } else if is(pipe::check_fitness) {
            self.serve_streams(connection, visitor).await;
        } else {
            note(format!(
                "{}: refused: a connection without streams; use the same release of restp on both sides",
                peer(&connection)
            ));
        }
    }

    /// Serves each stream by itself.
    async fn serve_streams(self: &Arc<Self>, connection: Connection, visitor: Visitor) {
        let Some(admission) = self.pending.enter(visitor) else {
            // It would wait for an answer, so it is broken off.
            return note(format!(
                "{}: refused: many connections have not shown yet what they may, and this would be one more",
                peer(&connection)
            ));
        };
        let (admission, connection) = (Arc::new(admission), Arc::new(connection));
        let mut streams = JoinSet::new();
        let mut lapse = pin!(admission.lapse(SOON));
        loop {
            tokio::select! {
                stream = connection.accept_stream() => {
                    let Some(stream) = stream else {
                        break; // the peer opens no more
                    };
                    let (service, connection, admission) = (self.clone(), connection.clone(), admission.clone());
                    streams.spawn(async move { service.serve_stream(&connection, stream, &admission).await });
                }
                Some(_) = streams.join_next() => {
                    if streams.is_empty() && !admission.is_granted() {
                        break;
                    }
                }
                () = &mut lapse => {
                    streams.abort_all();
                    break;
                }
            }
        }
        while streams.join_next().await.is_some() {}
        end(&connection).await;
    }

    /// Serves one until it is over.
    async fn serve_stream(&self, connection: &Connection, stream: BiStream, admission: &Admission) {
        let mut inlet = Inlet::new(&stream);
        let request = match timeout(SOON, Request::read(&mut inlet)).await {
            Ok(request) => request.map_err(Refusal::other),
            Err(_) => Err(Refusal::other("nothing was asked for in time")),
        };
        let rest = inlet.into_rest();
        let served = match request {
            Ok(request) => {
                self.serve_request(connection, (&stream, rest), request, admission)
                    .await
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = served {
            note(format!("{}: refused: {refusal}", peer(connection)));
            say(&stream, Answer::Refused(refusal)).await;
        }
        stream.finish();
    }

    async fn serve_request(
        &self,
        connection: &Connection,
        stream: (&BiStream, Bytes),
        request: Request,
        admission: &Admission,
    ) -> Result<(), Refusal> {
        self.admit(&request.capability)?;
        admission.grant();
        self.run_in_place(connection, stream, request.operation, admission.visitor())
            .await
    }

    /// Runs `operation` once there is a place for it.
    async fn run_in_place(
        &self,
        connection: &Connection,
        stream: (&BiStream, Bytes),
        operation: Operation,
        visitor: Visitor,
    ) -> Result<(), Refusal> {
        let limit = match operation {
            Operation::Connect(_) | Operation::Take(_) => &self.limit,
            Operation::Check(_) | Operation::Listen(_) => &self.others,
        };
        let Ok(_place) = timeout(PLACE_TIME, self.enter(limit, visitor)).await else {
            // Whoever connected to the listener would wait for ever, and take one of the few places of those who do.
            if let Operation::Take(token) = operation
                && let Some(waiting) = self.listeners.take(&token)
            {
                pipe::reset(waiting);
            }
            return Err(Refusal::other(FULL));
        };
        self.run(connection, stream, operation).await
    }

    /// Waits for a place.
    async fn enter<'a>(&'a self, limit: &'a Mutex<AdmissionLimit>, visitor: Visitor) -> Taken<'a> {
        loop {
            let left = self.left.notified();
            if lock(limit).take(&visitor) {
                return Taken {
                    limit,
                    visitor,
                    left: &self.left,
                };
            }
            left.await;
        }
    }

    async fn run(
        &self,
        connection: &Connection,
        (stream, mut rest): (&BiStream, Bytes),
        operation: Operation,
    ) -> Result<(), Refusal> {
        let carry = async |tcp: TcpStream, rest| {
            let target = tcp
                .peer_addr()
                .map_or_else(|_| "its target".into(), |at| at.to_string());
            say(stream, Answer::Accepted(String::new())).await;
            if let Err(broken) = pipe::join_tcp(connection, (stream, rest), tcp).await {
                let peer = peer(connection);
                match broken {
                    // As ssh ends what it goes through, and browsers what nobody looks at any more.
                    Broken::Far => tracing::debug!(%peer, target, "broken off by the far end"),
                    broken => note(format!("{peer}: a pipe to {target} broke: {broken}")),
                }
                stream.reset(0);
            }
        };
        match operation {
            Operation::Check(name) => {
                match self.allowed.allows_some(&name) {
                    Some(true) => {}
                    Some(false) => return Err(Refusal::not_allowed(&name)),
                    None => drop(self.place(&name)?),
                }
                say(stream, Answer::Accepted(String::new())).await;
            }
            Operation::Connect(name) => {
                let place = self.place(&name)?;
                if !place.is_tcp() {
                    return Err(Refusal::not_allowed(&name));
                }
                let tcp = tokio::select! {
                    tcp = connect(&place) => tcp,
                    () = gone(stream, &mut rest) => return Ok(()),
                };
                carry(
                    tcp.map_err(|error| Refusal::of(&place.to_string(), &error))?,
                    rest,
                )
                .await;
            }
            Operation::Take(token) => {
                let waiting = self.listeners.take(&token);
                let waiting = waiting.ok_or_else(|| Refusal::other("that connection waits here no more"));
                carry(waiting?, rest).await;
            }
            Operation::Listen(name) => {
                let place = self.place(&name)?;
                if !place.is_listener() {
                    return Err(Refusal::not_allowed(&name));
                }
                let held = self.listeners.hold(&place, connection.peer_key()).await?;
                say(stream, Answer::Accepted(held.address())).await;
                held.announce(stream).await;
            }
        }
        Ok(())
    }

    /// Lets in who shows what he must.
    pub fn admit(&self, capability: &Capability) -> Result<(), Refusal> {
        match &self.capability {
            Some(wanted) if capability != wanted => Err(Refusal::other(
                "the server takes those who have its ticket; use the whole word after \"ticket:\"",
            )),
            _ => Ok(()),
        }
    }

    /// UDP sockets that were asked for.
    pub fn sockets(&self) -> &Pool<ReplySocket> {
        &self.sockets
    }

    /// TUN devices that were asked for.
    pub fn devices(&self) -> &Pool<Tun> {
        &self.devices
    }

    /// Addresses of this host in tunnels.
    pub fn tunnels(&self) -> &[Subnet] {
        self.allowed.tunnels()
    }

    /// The place of this name, if it is allowed.
    pub fn place(&self, name: &str) -> Result<Place, Refusal> {
        if name.is_empty() {
            let first = self.allowed.first();
            return first.ok_or_else(|| Refusal::other("name a target: no single one is allowed there"));
        }
        let place: Place = name.parse().map_err(Refusal::other)?;
        if self.allowed.allows(&place) {
            Ok(place)
        } else {
            Err(Refusal::not_allowed(&place.to_string()))
        }
    }
}

async fn connect(place: &Place) -> io::Result<TcpStream> {
    match timeout(SOON, target::connect(place)).await {
        Ok(connected) => connected,
        Err(_) => Err(ErrorKind::TimedOut.into()),
    }
}

/// Waits until who asked has broken off, as far as that is seen before he sends anything, which `rest` is then: where a target does not
/// answer, others have use for his place.
async fn gone(stream: &BiStream, rest: &mut Bytes) {
    if rest.is_empty() {
        match stream.recv().await {
            Ok(early) => *rest = early.unwrap_or_default(),
            Err(_) => return,
        }
    }
    std::future::pending().await
}

/// Whom it is for hears of the end that is not here.
async fn say(stream: &BiStream, answer: Answer) {
    let _ = stream.send(answer.encode().into()).await;
}

/// Everything has been said: waits a moment that it arrives.
pub async fn end(connection: &Connection) {
    connection.finish();
    let heard = async {
        while connection.recv().await.is_some() {}
        connection.closed().await
    };
    let _ = timeout(GOODBYE, heard).await;
    connection.abort();
}

/// A place that is taken until this is dropped, also with a task that is ended.
struct Taken<'a> {
    limit: &'a Mutex<AdmissionLimit>,
    visitor: Visitor,
    left: &'a Notify,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        lock(self.limit).leave(&self.visitor);
        self.left.notify_waiters();
    }
}

fn lock(limit: &Mutex<AdmissionLimit>) -> MutexGuard<'_, AdmissionLimit> {
    limit.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::SERVICE_PORT;
    use crate::transfer::Inlet;
    use restp::{Acceptance, Endpoint, EndpointConfig, Trust};

    const LONG: Duration = Duration::from_secs(60);

    fn endpoint(trust: Trust) -> Endpoint {
        let mut composition = Composition::default();
        pipe::prepare(&mut composition);
        let config = EndpointConfig::new(composition.check().expect("valid"));
        let config = config.listen(SERVICE_PORT, Acceptance::Any);
        Endpoint::bind("127.0.0.1:0".parse().expect("an address"), config, trust).expect("a socket")
    }

    fn request() -> Vec<u8> {
        let request = Request {
            capability: Capability::none(),
            operation: Operation::Check("tcp:127.0.0.1:1".into()),
        };
        request.encode()
    }

    async fn answer(stream: &BiStream) -> Option<Answer> {
        let mut inlet = Inlet::new(stream);
        timeout(LONG, Answer::read(&mut inlet)).await.expect("an answer")
    }

    /// It took no further streams, and those that were opened waited until the others were over.
    #[tokio::test]
    async fn a_stream_that_fails_first_does_not_end_the_association_for_the_others() {
        let server = endpoint(Trust::Nobody);
        let client = endpoint(Trust::Key(server.public_key().expect("sealed")));
        let allowed = AllowList::of(&["tcp:127.0.0.1:1".to_owned()]).expect("a place");
        let service = Arc::new(Service::new(allowed, None, 8));
        let opened = client
            .connect(server.local_addr(), SERVICE_PORT)
            .await
            .expect("there");
        let accepted = server.accept().await.expect("one");
        let visitor = Visitor::of(&accepted);
        let serving = tokio::spawn(async move { service.serve(accepted, visitor).await });
        let (slow, wrong) = (
            opened.open_stream().await.expect("a stream"),
            opened.open_stream().await.expect("a stream"),
        );
        let (first, rest) = (request()[..5].to_vec(), request()[5..].to_vec());
        slow.send(first.into()).await.expect("open");
        wrong
            .send(Bytes::from_static(b"GET / HTTP/1.1\r\n"))
            .await
            .expect("open");
        assert!(matches!(answer(&wrong).await, Some(Answer::Refused(_))));
        drop(wrong);
        let next = opened.open_stream().await.expect("a stream");
        next.send(request().into()).await.expect("open");
        assert_eq!(answer(&next).await, Some(Answer::Accepted(String::new())));
        slow.send(rest.into()).await.expect("open");
        assert_eq!(answer(&slow).await, Some(Answer::Accepted(String::new())));
        drop((slow, next));
        opened.finish();
        timeout(LONG, serving).await.expect("an end").expect("no panic");
    }

    #[tokio::test]
    async fn an_association_of_which_nobody_may_come_ends() {
        let server = endpoint(Trust::Nobody);
        let client = endpoint(Trust::Key(server.public_key().expect("sealed")));
        let allowed = AllowList::of(&["tcp:127.0.0.1:1".to_owned()]).expect("a place");
        let secret = restp::SecretKey::from_chance([7; 32]);
        let service = Arc::new(Service::new(allowed, Some(Capability::of(&secret)), 8));
        let opened = client
            .connect(server.local_addr(), SERVICE_PORT)
            .await
            .expect("there");
        let accepted = server.accept().await.expect("one");
        let visitor = Visitor::of(&accepted);
        let serving = tokio::spawn(async move { service.serve(accepted, visitor).await });
        let stream = opened.open_stream().await.expect("a stream");
        stream.send(request().into()).await.expect("open");
        assert!(matches!(answer(&stream).await, Some(Answer::Refused(_))));
        drop(stream);
        timeout(LONG, serving).await.expect("an end").expect("no panic");
        timeout(LONG, opened.closed()).await.expect("an end");
    }
}

//! TCP to what a name means. A host may have several addresses, and some of them may not answer: the next one is tried when one has
//! said nothing for a moment, beside it (Happy Eyeballs, RFC 8305 §5).

use super::Place;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Connection Attempt Delay (RFC 8305 §8).
const NEXT: Duration = Duration::from_millis(250);

/// A connection to `place`.
///
/// # Errors
/// `NotFound` when its host has no address; what the last address said when none takes the connection.
pub async fn connect(place: &Place) -> io::Result<TcpStream> {
    let (host, port) = place.host_and_port();
    let found = lookup_host((&host[..], port)).await;
    let found = found.map_err(|error| io::Error::new(ErrorKind::NotFound, error))?;
    first_of(in_turns(found.collect())).await
}

/// Both families take turns, in the order in which they were found (RFC 8305 §4).
fn in_turns(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let turns = std::iter::from_fn(|| {
        let pair = [first.next(), second.next()];
        pair.iter().any(Option::is_some).then_some(pair)
    });
    turns.flatten().flatten().collect()
}

/// The first connection of those to `addresses`. The others are given up.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut rest = addresses.into_iter();
    let mut tried = JoinSet::new();
    let mut failed = io::Error::from(ErrorKind::NotFound);
    loop {
        let delay = match rest.next() {
            Some(address) => {
                tried.spawn(TcpStream::connect(address));
                NEXT
            }
            None if tried.is_empty() => return Err(failed),
            None => Duration::MAX,
        };
        match timeout(delay, tried.join_next()).await {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(error)))) => failed = error,
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn addresses(text: &[&str]) -> Vec<SocketAddr> {
        text.iter()
            .map(|text| text.parse().expect("an address"))
            .collect()
    }

    #[test]
    fn families_take_turns() {
        let found = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "127.0.0.1:1", "127.0.0.2:1"]);
        let turns = addresses(&["[::1]:1", "127.0.0.1:1", "[::2]:1", "127.0.0.2:1", "[::3]:1"]);
        assert_eq!(in_turns(found), turns);
        assert_eq!(
            in_turns(addresses(&["127.0.0.1:1", "[::1]:1"])),
            addresses(&["127.0.0.1:1", "[::1]:1"])
        );
        assert_eq!(in_turns(Vec::new()), []);
    }

    #[tokio::test]
    async fn who_answers_is_reached_behind_who_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let there = listener.local_addr().expect("bound");
        let refuses = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let gone = refuses.local_addr().expect("bound");
        drop(refuses);
        let stream = first_of(vec![gone, gone, there]).await.expect("it answers");
        assert_eq!(stream.peer_addr().expect("connected"), there);
        let error = first_of(vec![gone, gone]).await.expect_err("nobody answers");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = first_of(Vec::new()).await.expect_err("no address");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    /// A listener whose queue is full answers nothing: a silent address.
    #[tokio::test]
    async fn who_is_silent_does_not_keep_the_next_waiting() {
        let silent =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        silent.bind(&any.into()).expect("bound");
        silent.listen(0).expect("listening");
        let silent_at = silent
            .local_addr()
            .expect("bound")
            .as_socket()
            .expect("an address");
        let mut waiting = Vec::new();
        while let Ok(Ok(stream)) = timeout(NEXT, TcpStream::connect(silent_at)).await {
            waiting.push(stream);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let there = listener.local_addr().expect("bound");
        let stream = first_of(vec![silent_at, there]).await.expect("it answers");
        assert_eq!(stream.peer_addr().expect("connected"), there);
    }
}

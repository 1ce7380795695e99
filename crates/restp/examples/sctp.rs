//! SCTP over UDP (RFC 6951), with concurrent multipath transfer (CMT): one association with this program or another stack. What the
//! sender reads from standard input the receiver writes to standard output; at the end each says on standard error what passed.
//! usage: sctp recv ADDRESS[,ADDRESS] [KEY=VALUE]…
//!        sctp send ADDRESS[,ADDRESS] TO[,TO] [KEY=VALUE]…
//! Addresses are those of IP; the first one here speaks with the first one there. Keys are those of `cmt:NAME` in scenarios, and `scheme`,
//! the retransmission policy: `cwnd` where nothing is said.

#![allow(clippy::print_stderr, reason = "a program of its own that says what passed")]

use bytes::Bytes;
use restp::Endpoint;
use restp::clock::Clock;
use restp_base::machine::PathAddress;
use restp_rivals::sctp::{Sctp, SctpConfig, SctpParameters};
use restp_services::connection_management::CookieParameters;
use std::error::Error;
use std::net::{AddrParseError, IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt, stdin, stdout};

/// The port of UDP at both ends (RFC 6951 §5.1), and of SCTP at the receiver's.
const UDP_PORT: u16 = 9899;
const SERVICE: u16 = 5001;

const USAGE: &str =
    "usage: sctp recv ADDRESS[,ADDRESS] [KEY=VALUE]… | sctp send ADDRESS[,ADDRESS] TO[,TO] [KEY=VALUE]…";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["recv", here, set @ ..] => recv(&addresses(here)?, parameters(set)?).await,
        ["send", here, there, set @ ..] => {
            send(&addresses(here)?, &addresses(there)?, parameters(set)?).await
        }
        _ => Err(USAGE.into()),
    }
}

fn addresses(list: &str) -> Result<Vec<IpAddr>, AddrParseError> {
    list.split(',').map(str::parse).collect()
}

fn parameters(words: &[&str]) -> Result<SctpParameters, Box<dyn Error>> {
    let pairs = words.iter().map(|word| word.split_once('=').ok_or(USAGE));
    let mut pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    let scheme = pairs.iter().position(|(key, _)| *key == "scheme");
    let scheme = scheme.map_or("cwnd", |at| pairs.remove(at).1);
    Ok(SctpParameters::concurrent_from_pairs(scheme, &pairs)?)
}

fn at(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, UDP_PORT)
}

/// A host at these addresses. Tags and cookies are not to be guessed (RFC 9260 §5.3.1).
fn host(
    here: &[IpAddr],
    parameters: SctpParameters,
    listen: Option<u16>,
) -> Result<Endpoint<Sctp>, Box<dyn Error>> {
    let (mut key, mut seed) = ([0; 16], [0; 8]);
    getrandom::fill(&mut key)?;
    getrandom::fill(&mut seed)?;
    let config = SctpConfig {
        listen,
        seed: u64::from_ne_bytes(seed),
        cookies: CookieParameters {
            key,
            ..CookieParameters::default()
        },
        addresses: here.to_vec(),
        ..SctpConfig::new(parameters)
    };
    let locals: Vec<_> = here.iter().copied().map(at).collect();
    Ok(Endpoint::with_machine(Sctp::new(config), &locals)?)
}

async fn recv(here: &[IpAddr], parameters: SctpParameters) -> Result<(), Box<dyn Error>> {
    let endpoint = host(here, parameters, Some(SERVICE))?;
    eprintln!("{{\"ready\":true}}");
    let association = endpoint.accept().await.ok_or("the host has ended")?;
    let (mut out, mut bytes, mut clock) = (stdout(), 0, None);
    while let Some(message) = association.recv().await {
        clock.get_or_insert_with(Clock::start);
        bytes += message.len();
        out.write_all(&message).await?;
    }
    let seconds = clock.map_or(0.0, |clock| clock.now().as_secs_f64());
    out.flush().await?;
    tell(bytes, seconds, &association.stats());
    association.close().await;
    endpoint.close().await;
    Ok(())
}

async fn send(here: &[IpAddr], there: &[IpAddr], parameters: SctpParameters) -> Result<(), Box<dyn Error>> {
    let most = parameters.message_bytes.unwrap_or(parameters.segment_bytes) as usize;
    let endpoint = host(here, parameters, None)?;
    let pairs = here.iter().zip(there);
    let paths: Vec<_> = pairs
        .map(|(local, remote)| PathAddress {
            local: at(*local),
            remote: at(*remote),
        })
        .collect();
    let association = endpoint.open_paths(&paths, SERVICE)?;
    association
        .established()
        .await
        .map_err(|why| format!("no association: {why:?}"))?;
    let (clock, mut bytes, mut input) = (Clock::start(), 0, stdin());
    let mut block = vec![0; most];
    loop {
        let filled = fill(&mut input, &mut block).await?;
        if filled == 0 {
            break;
        }
        association.send(Bytes::copy_from_slice(&block[..filled])).await?;
        bytes += filled;
    }
    association.finish();
    let stats = association.stats();
    association.close().await;
    tell(bytes, clock.now().as_secs_f64(), &stats);
    endpoint.close().await;
    Ok(())
}

/// Reads until the block is full or the input ends.
async fn fill(input: &mut (impl AsyncReadExt + Unpin), block: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match input.read(&mut block[filled..]).await? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

fn tell(bytes: usize, seconds: f64, stats: &restp::FlowStats) {
    let paths: Vec<_> = stats.paths.iter().map(|path| path.sent_bytes).collect();
    let retransmitted = stats.retransmitted_packets;
    eprintln!(
        "{{\"bytes\":{bytes},\"seconds\":{seconds:.3},\"retransmitted\":{retransmitted},\"paths\":{paths:?}}}"
    );
}

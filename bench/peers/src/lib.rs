//! The part the peers share: one command line, one form of result.
//!
//! Every peer, and `restp bench` as well, is started twice by `bench/run.py`:
//!
//! ```text
//! PEER --role server --listen 127.0.0.1:0                  prints {"listening": ..., "client_args": [...]}, then its result
//! PEER --role client --to 127.0.0.1:PORT --seconds S ...   prints its result
//! ```
//!
//! The server receives one bulk transfer and exits. Its result counts: bytes that the receiving application got.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Largest UDP payload in an IPv4 packet of 1500 bytes: what a path across Ethernet carries, on loopback as well.
pub const UDP_PAYLOAD: u16 = 1472;

/// Socket buffers of every peer, in bytes; the kernel may grant less.
pub const SOCKET_BUFFER: usize = 4 << 20;

/// Which end of the transfer this process is.
pub enum Role {
    Server {
        listen: SocketAddr,
    },
    Client {
        to: SocketAddr,
        seconds: f64,
        certificate: Option<Vec<u8>>,
    },
}

impl Role {
    /// Reads the process's arguments.
    ///
    /// # Errors
    /// Those of [`Role::parse`].
    pub fn from_args() -> anyhow::Result<Role> {
        Role::parse(std::env::args().skip(1))
    }

    /// Reads `arguments`.
    ///
    /// # Errors
    /// An argument is unknown, lacks its value, or is missing for the role.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> anyhow::Result<Role> {
        let (mut role, mut listen, mut to, mut seconds, mut certificate) = (None, None, None, 4.0, None);
        let mut args = arguments.into_iter();
        while let Some(name) = args.next() {
            let value = args.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--role" => role = Some(value),
                "--listen" => listen = Some(value.parse().context("--listen takes IP:PORT")?),
                "--to" => to = Some(value.parse().context("--to takes IP:PORT")?),
                "--seconds" => seconds = value.parse().context("--seconds takes a number")?,
                "--certificate" => certificate = Some(from_hex(&value)?),
                _ => bail!("{name}: allowed are --role, --listen, --to, --seconds, --certificate"),
            }
        }
        match role.as_deref() {
            Some("server") => Ok(Role::Server {
                listen: listen.context("a server needs --listen IP:PORT")?,
            }),
            Some("client") => Ok(Role::Client {
                to: to.context("a client needs --to IP:PORT")?,
                seconds,
                certificate,
            }),
            _ => bail!("--role is server or client"),
        }
    }
}

/// Tells the other side's starter where to connect and with which further arguments.
pub fn announce(at: SocketAddr, client_args: &[String]) {
    let quoted: Vec<String> = client_args.iter().map(|arg| format!("\"{arg}\"")).collect();
    println!(
        "{{\"listening\": \"{at}\", \"client_args\": [{}]}}",
        quoted.join(", ")
    );
}

/// Counts application bytes from the first to the last one.
#[derive(Default)]
pub struct Meter {
    bytes: u64,
    span: Option<(Instant, Instant)>,
}

impl Meter {
    /// `bytes` passed just now.
    pub fn add(&mut self, bytes: usize) {
        let now = Instant::now();
        self.bytes += bytes as u64;
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Prints the result line; `extra` holds further `"key": value` pairs.
    ///
    /// # Errors
    /// Nothing passed, so there is no rate.
    pub fn report(&self, name: &str, role: &str, extra: &str) -> anyhow::Result<()> {
        let seconds = self
            .span
            .map_or(Duration::ZERO, |(first, last)| last - first)
            .as_secs_f64();
        if seconds == 0.0 {
            bail!("{name} {role}: no data passed");
        }
        let goodput = self.bytes as f64 * 8.0 / seconds;
        let bytes = self.bytes;
        let extra = if extra.is_empty() {
            String::new()
        } else {
            format!(", {extra}")
        };
        println!(
            "{{\"name\": \"{name}\", \"role\": \"{role}\", \"bytes\": {bytes}, \"seconds\": {seconds:.6}, \
             \"goodput_bps\": {goodput:.0}{extra}}}"
        );
        Ok(())
    }
}

/// A bound UDP socket with the buffers every peer gets.
///
/// # Errors
/// The address cannot be bound or the system refuses the buffers.
pub fn udp_socket(at: SocketAddr) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind(at).with_context(|| format!("cannot bind {at}"))?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_BUFFER)?;
    options.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Lower-case hexadecimal digits of `bytes`.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits.
///
/// # Errors
/// They are no digits, or an odd number of them.
pub fn from_hex(text: &str) -> anyhow::Result<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        bail!("--certificate takes an even number of hexadecimal digits");
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).context("--certificate takes hexadecimal digits"))
        .collect()
}

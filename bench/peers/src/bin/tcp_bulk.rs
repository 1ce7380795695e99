//! Kernel TCP, one connection, CUBIC, no encryption.
//!
//! For reference only: on loopback the kernel moves 64 KiB segments by reference, so no packet of 1500 bytes is made.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;
use peers::{Meter, Role, announce};

const CHUNK_BYTES: usize = 256 << 10;

fn main() -> anyhow::Result<()> {
    match Role::from_args()? {
        Role::Server { listen } => receive(listen),
        Role::Client { to, seconds, .. } => send(to, Duration::from_secs_f64(seconds)),
    }
}

fn receive(listen: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("cannot bind {listen}"))?;
    announce(listener.local_addr()?, &[]);
    let (mut stream, _) = listener.accept()?;
    let mut space = vec![0; CHUNK_BYTES];
    let mut meter = Meter::default();
    loop {
        match stream.read(&mut space)? {
            0 => break,
            bytes => meter.add(bytes),
        }
    }
    meter.report("tcp", "server", "")
}

fn send(to: SocketAddr, duration: Duration) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(to).with_context(|| format!("cannot reach {to}"))?;
    socket2::SockRef::from(&stream).set_tcp_congestion(b"cubic")?;
    let data = vec![0x5a; CHUNK_BYTES];
    let mut meter = Meter::default();
    let end = Instant::now() + duration;
    while Instant::now() < end {
        stream.write_all(&data)?;
        meter.add(data.len());
    }
    stream.shutdown(Shutdown::Write)?;
    meter.report("tcp", "client", "")
}

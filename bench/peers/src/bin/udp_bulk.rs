//! Bare UDP through the product's own socket layer: segmentation offload, receive coalescing, no protocol at all.
//!
//! The ceiling for anything that runs over UDP on this machine. Nothing is repeated: what the receiver's buffer
//! drops is lost, and the result counts what arrived.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use peers::{Meter, Role, UDP_PAYLOAD, announce, udp_socket};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Largest UDP datagram the kernel takes or returns, before segmentation and after coalescing.
const LARGEST_BATCH: usize = 65_507;
/// A datagram of one byte ends the transfer; a few of them, since any may be lost.
const LAST: [u8; 1] = [0xff];
const LAST_REPEATS: usize = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match Role::from_args()? {
        Role::Server { listen } => receive(listen).await,
        Role::Client { to, seconds, .. } => send(to, Duration::from_secs_f64(seconds)).await,
    }
}

async fn receive(listen: SocketAddr) -> anyhow::Result<()> {
    let socket = UdpSocket::from_std(udp_socket(listen)?)?;
    let state = UdpSocketState::new((&socket).into())?;
    announce(socket.local_addr()?, &[]);

    let mut space = vec![0; BATCH_SIZE * (LARGEST_BATCH + 1)];
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    let mut meter = Meter::default();
    let mut datagrams = 0;
    'transfer: loop {
        socket.readable().await?;
        let mut chunks = space.chunks_mut(LARGEST_BATCH + 1).map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| chunks.next().unwrap_or(IoSliceMut::new(&mut [])));
        let got = socket.try_io(Interest::READABLE, || {
            state.recv((&socket).into(), &mut buffers, &mut metas)
        });
        let count = match got {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        };
        for meta in &metas[..count] {
            if meta.len == LAST.len() {
                break 'transfer;
            }
            meter.add(meta.len);
            datagrams += meta.len.div_ceil(meta.stride);
        }
    }
    meter.report("udp", "server", &format!("\"packets\": {datagrams}"))
}

async fn send(to: SocketAddr, duration: Duration) -> anyhow::Result<()> {
    let socket = UdpSocket::from_std(udp_socket((Ipv4Addr::UNSPECIFIED, 0).into())?)?;
    let state = UdpSocketState::new((&socket).into())?;
    let size = usize::from(UDP_PAYLOAD);
    let segments = state.max_gso_segments().min(LARGEST_BATCH / size);
    let data = vec![0x5a; size * segments];
    let batch = Transmit {
        destination: to,
        ecn: None,
        contents: &data,
        segment_size: Some(size),
        src_ip: None,
    };

    let mut meter = Meter::default();
    let end = Instant::now() + duration;
    while Instant::now() < end {
        transmit(&socket, &state, &batch).await?;
        meter.add(data.len());
    }
    let last = Transmit {
        contents: &LAST,
        segment_size: None,
        ..batch
    };
    for _ in 0..LAST_REPEATS {
        tokio::time::sleep(Duration::from_millis(20)).await;
        // The receiver leaves with the first of them; the refusals after that are the sign of success.
        if transmit(&socket, &state, &last).await.is_err() {
            break;
        }
    }
    meter.report(
        "udp",
        "client",
        &format!("\"udp_payload\": {size}, \"segments_per_call\": {segments}"),
    )
}

async fn transmit(socket: &UdpSocket, state: &UdpSocketState, batch: &Transmit<'_>) -> std::io::Result<()> {
    loop {
        socket.writable().await?;
        match socket.try_io(Interest::WRITABLE, || state.try_send(socket.into(), batch)) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

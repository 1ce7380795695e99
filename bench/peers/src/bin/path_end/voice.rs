//! Voice: 160 bytes every 20 ms (G.711), of use for 160 ms.

use crate::channel::{Client, Server, now};
use anyhow::Context;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const FRAME_BYTES: usize = 160;
const INTERVAL: Duration = Duration::from_millis(20);
const OF_USE: Duration = Duration::from_millis(160);
/// After the last frame is due.
const WAIT: Duration = Duration::from_secs(5);

fn frames(seconds: f64) -> u64 {
    (seconds / INTERVAL.as_secs_f64()) as u64
}

/// Says of how many frames it sent, each with its number and the moment it was due. Streams without boundaries carry the
/// length before each.
pub async fn send(client: &Client, seconds: f64) -> anyhow::Result<()> {
    let mut channel = client.open().await?;
    let begun = tokio::time::Instant::now();
    let begun_at = now()?;
    let mut frame = Vec::with_capacity(2 + FRAME_BYTES);
    for number in 0..frames(seconds) {
        let due = INTERVAL * u32::try_from(number)?;
        tokio::time::sleep_until(begun + due).await;
        frame.clear();
        if !channel.keeps_boundaries {
            frame.extend_from_slice(&(FRAME_BYTES as u16).to_be_bytes());
        }
        let body = frame.len();
        frame.extend_from_slice(&number.to_be_bytes());
        frame.extend_from_slice(&u64::try_from((begun_at + due).as_nanos())?.to_be_bytes());
        frame.resize(body + FRAME_BYTES, 0);
        channel.stream.write_all(&frame).await?;
    }
    tokio::time::sleep(WAIT).await;
    channel.stream.shutdown().await?;
    Ok(())
}

/// Counts frames that came, and those that came in time.
pub async fn receive(server: &mut Server, seconds: f64) -> anyhow::Result<()> {
    let mut channel = server.accept().await?;
    let (mut received, mut on_time) = (0u64, 0u64);
    let mut latencies = Vec::new();
    let end = tokio::time::Instant::now() + Duration::from_secs_f64(seconds) + WAIT;
    loop {
        let mut frame = [0; FRAME_BYTES];
        let reading = async {
            if !channel.keeps_boundaries {
                channel.stream.read_u16().await?;
            }
            channel.stream.read_exact(&mut frame).await
        };
        match tokio::time::timeout_at(end, reading).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => break,
        }
        let (number, stamp) = (word(&frame, 0)?, word(&frame, 8)?);
        let latency = now()?.saturating_sub(Duration::from_nanos(stamp));
        received += 1;
        on_time += u64::from(latency <= OF_USE);
        latencies.push(latency);
        if number + 1 == frames(seconds) {
            break;
        }
    }
    latencies.sort_unstable();
    let at = |share: usize| {
        latencies
            .get(latencies.len() * share / 1000)
            .map_or(0.0, |l| l.as_secs_f64() * 1e3)
    };
    println!(
        "{{\"frames\": {}, \"received\": {received}, \"on_time\": {on_time}, \"median_ms\": {:.2}, \"p99_ms\": {:.2}}}",
        frames(seconds),
        at(500),
        at(990)
    );
    Ok(())
}

fn word(frame: &[u8; FRAME_BYTES], at: usize) -> anyhow::Result<u64> {
    let bytes = frame[at..at + 8].try_into().context("eight bytes")?;
    Ok(u64::from_be_bytes(bytes))
}

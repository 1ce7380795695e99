//! Bulk: the client writes for as long as somebody reads; the server logs what arrives when.

use crate::channel::{Client, Server, now};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CHUNK_BYTES: usize = 256 << 10;
/// One entry of the log.
const BIN: Duration = Duration::from_millis(100);
/// A silence this long is reported when it ends.
const GAP: Duration = Duration::from_millis(10);

/// Receives for `seconds` from the first byte on. Prints every silence as it ends, then bytes per tenth of a second.
pub async fn receive(server: &mut Server, seconds: f64) -> anyhow::Result<()> {
    let mut channel = server.accept().await?;
    let mut space = vec![0; CHUNK_BYTES];
    let mut bins: Vec<u64> = Vec::new();
    let length = Duration::from_secs_f64(seconds);
    let mut span: Option<(Duration, Duration)> = None;
    loop {
        let got = tokio::time::timeout(Duration::from_secs(300), channel.stream.read(&mut space)).await??;
        let at = now()?;
        let (first, last) = span.unwrap_or((at, at));
        if at - last > GAP {
            println!("{{\"silence\": [{}, {}]}}", last.as_nanos(), at.as_nanos());
        }
        span = Some((first, at));
        if got == 0 || at - first >= length {
            break;
        }
        let bin = ((at - first).as_nanos() / BIN.as_nanos()) as usize;
        bins.resize(bins.len().max(bin + 1), 0);
        bins[bin] += got as u64;
    }
    let first = span.unwrap_or_default().0.as_nanos();
    println!("{{\"first\": {first}, \"tenths\": {bins:?}}}");
    Ok(())
}

/// Writes until the other side is gone.
pub async fn send(client: &Client) -> anyhow::Result<()> {
    let mut channel = client.open().await?;
    let data = vec![0x5a; CHUNK_BYTES];
    while channel.stream.write_all(&data).await.is_ok() {}
    Ok(())
}

//! Question and answer: how long from opening a connection to the first byte of the response.

use crate::channel::{Channel, Client, Server, now};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdin};

const REQUEST_BYTES: usize = 100;
const RESPONSE_BYTES: usize = 1000;
/// For what comes after a response: tickets, the farewell.
const SETTLE: Duration = Duration::from_millis(500);

/// Answers every request.
pub async fn serve(server: &mut Server) -> anyhow::Result<()> {
    loop {
        let channel = server.accept().await?;
        tokio::spawn(respond(channel));
    }
}

async fn respond(mut channel: Channel) -> anyhow::Result<()> {
    let mut request = [0; REQUEST_BYTES];
    channel.stream.read_exact(&mut request).await?;
    channel.stream.write_all(&[0x5a; RESPONSE_BYTES]).await?;
    channel.stream.shutdown().await?;
    // Until the client has left.
    channel.stream.read_to_end(&mut Vec::new()).await?;
    tokio::time::sleep(SETTLE).await;
    Ok(())
}

/// A first visit, which brings cookie or ticket; a line from the starter, who may prepare the path; the second visit.
pub async fn ask(client: &Client) -> anyhow::Result<()> {
    let first = visit(client).await?;
    println!("{{\"first_visit_ms\": {first:.3}}}");
    BufReader::new(stdin()).lines().next_line().await?;
    let second = visit(client).await?;
    println!("{{\"second_visit_ms\": {second:.3}}}");
    Ok(())
}

async fn visit(client: &Client) -> anyhow::Result<f64> {
    let begun = now()?;
    let mut channel = client.open().await?;
    channel.stream.write_all(&[0x5a; REQUEST_BYTES]).await?;
    channel.stream.read_exact(&mut [0; 1]).await?;
    let taken = now()? - begun;
    channel.stream.read_exact(&mut [0; RESPONSE_BYTES - 1]).await?;
    tokio::time::sleep(SETTLE).await;
    channel.stream.shutdown().await?;
    drop(channel);
    tokio::time::sleep(SETTLE).await;
    Ok(taken.as_secs_f64() * 1e3)
}

//! Both ends of a ResTP stream.

use super::super::GOODBYE;
use super::meter::{Meter, announce};
use crate::failure::Failure;
use crate::transfer::SERVICE_PORT;
use bytes::Bytes;
use restp::clock::Clock;
use restp::{Acceptance, CloseReason, Endpoint, EndpointConfig, Local, Security, ValidComposition};
use restp_base::time::Time;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of one write.
const WRITE_BYTES: usize = 64 << 10;

/// Receives one stream to its end.
pub async fn serve(
    composition: ValidComposition,
    listen: SocketAddr,
    security: Security,
) -> Result<(), Failure> {
    let config = EndpointConfig::new(composition).listen(SERVICE_PORT, Acceptance::Any);
    let endpoint = bind(listen, config, security)?;
    announce(endpoint.local_addr())?;
    let connection = endpoint.accept().await;
    let connection = connection.ok_or_else(|| Failure::operation("the socket has failed"))?;
    let mut meter = Meter::start();
    while let Some(data) = connection.recv().await {
        meter.add(data.len());
    }
    let stats = connection.stats();
    let reason = connection.close().await;
    let _ = timeout(GOODBYE, endpoint.close()).await;
    expect_finished(reason)?;
    meter.report("restp", "server", stats.received_packets, None)
}

/// Sends for `seconds`, and waits until everything has arrived.
pub async fn send(
    composition: ValidComposition,
    to: SocketAddr,
    seconds: Duration,
    security: Security,
) -> Result<(), Failure> {
    let local: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = bind(local, EndpointConfig::new(composition), security)?;
    let connection = endpoint
        .connect(to, SERVICE_PORT)
        .await
        .map_err(Failure::operation)?;
    let data = Bytes::from(vec![0x5a; WRITE_BYTES]);
    let (clock, mut meter) = (Clock::start(), Meter::start());
    while clock.now().since(Time::ZERO).as_nanos() < seconds.as_nanos() as u64 {
        connection.send(data.clone()).await.map_err(Failure::operation)?;
        meter.add(data.len());
    }
    connection.finish();
    let reason = connection.closed().await;
    let stats = connection.stats();
    drop(connection);
    let _ = timeout(GOODBYE, endpoint.close()).await;
    expect_finished(reason)?;
    meter.report("restp", "client", stats.sent_packets, Some(stats.lost_packets))
}

fn bind(local: SocketAddr, config: EndpointConfig, security: Security) -> Result<Endpoint, Failure> {
    let bound = Endpoint::bind_with(&[Local::Address(local)], config, security);
    bound.map_err(|error| Failure::operation(format!("{local}: {error}")))
}

fn expect_finished(reason: CloseReason) -> Result<(), Failure> {
    match reason {
        CloseReason::Finished => Ok(()),
        other => Err(Failure::operation(format!(
            "the stream did not end well: {other}"
        ))),
    }
}

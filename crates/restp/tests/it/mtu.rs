//! A path over real sockets whose largest packet nobody tells: only questions find it (RFC 8899).

use bytes::Bytes;
use restp::emulator::{Attachment, Emulator, NetConfig};
use restp::{Acceptance, Endpoint, EndpointConfig, Preset, Trust};
use std::net::SocketAddr;
use std::time::Duration;

const PORT: u16 = 7;
const LENGTH: usize = 3_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_crosses_a_path_of_1280_bytes() {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let composition = Preset::named("default").expect("a preset").composition();
    let config = || EndpointConfig::new(composition.clone().check().expect("valid"));
    let server =
        Endpoint::bind(loopback, config().listen(PORT, Acceptance::Any), Trust::Nobody).expect("loopback");
    let text = format!(
        "[[path]]\nname = \"tunnel\"\nlisten = \"127.0.0.1:0\"\nto = \"{}\"\nrate = \"50 Mbit/s\"\ndelay = \"2 ms\"\n\
         mtu = \"1280 B\"\n",
        server.local_addr()
    );
    let network = NetConfig::parse(&text).expect("a good network");
    let emulator = Emulator::from_config(&network, Attachment::Udp).expect("loopback ports");
    let address = emulator.ports()[0].listen.expect("a UDP path");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(emulator.run(async move {
        let _ = stopped.await;
    }));
    let client = Endpoint::bind(loopback, config(), Trust::Anybody).expect("loopback");
    let data: Vec<u8> = (0..LENGTH).map(|at| (at / 7 % 251) as u8).collect();
    let sent = Bytes::from(data.clone());
    let sending = tokio::spawn(async move {
        let connection = client.connect(address, PORT).await.expect("through the emulator");
        connection.send(sent).await.expect("open");
        connection.close().await
    });
    let receiving = async {
        let connection = server.accept().await.expect("a connection");
        let mut received = Vec::new();
        while let Some(part) = connection.recv().await {
            received.extend_from_slice(&part);
        }
        connection.close().await;
        sending.await.expect("no panic");
        received
    };
    let received = tokio::time::timeout(Duration::from_secs(60), receiving)
        .await
        .expect("within a minute");
    assert!(received == data, "{} of {LENGTH} bytes", received.len());
    drop(stop);
    let report = running.await.expect("no panic");
    let forward = &report.paths[0].forward;
    assert!(
        (1..=50).contains(&forward.dropped_length),
        "questions: {forward:?}"
    );
}

//! SCTP over UDP sockets (RFC 6951): an association over two paths, with CMT. bench/sctp.py has it with another stack.

use bytes::Bytes;
use restp::Endpoint;
use restp_base::machine::PathAddress;
use restp_rivals::sctp::{Sctp, SctpConfig, SctpParameters};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

const SERVICE: u16 = 5001;
const MESSAGES: u32 = 2_000;
const BYTES: usize = 1_400;

/// A host at two addresses of loopback and one port of UDP.
fn host(first: u8, listen: Option<u16>) -> (Endpoint<Sctp>, [SocketAddr; 2]) {
    let parameters = SctpParameters::concurrent_from_pairs("same", &[]).expect("a policy");
    for _ in 0..100 {
        let free =
            UdpSocket::bind(SocketAddr::from(([127, 0, 0, first], 0))).and_then(|socket| socket.local_addr());
        let port = free.expect("loopback has free ports").port();
        let here = [first, first + 1].map(|last| SocketAddr::from(([127, 0, 0, last], port)));
        let config = SctpConfig {
            listen,
            addresses: here.map(|address| address.ip()).to_vec(),
            ..SctpConfig::new(parameters.clone())
        };
        if let Ok(endpoint) = Endpoint::with_machine(Sctp::new(config), &here) {
            return (endpoint, here);
        }
    }
    panic!("no port is free at both addresses");
}

fn message(number: u32) -> Bytes {
    let mut bytes = vec![number as u8; BYTES];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

#[tokio::test]
async fn an_association_over_two_paths_brings_every_message_in_order() {
    let ((server, there), (client, here)) = (host(3, Some(SERVICE)), host(5, None));
    let sender = tokio::spawn(async move {
        let paths = [0, 1].map(|path| PathAddress {
            local: here[path],
            remote: there[path],
        });
        let association = client.open_paths(&paths, SERVICE).expect("two paths");
        association.established().await.expect("somebody serves");
        for number in 0..MESSAGES {
            association.send(message(number)).await.expect("it is open");
        }
        association.finish();
        let stats = association.stats();
        association.closed().await;
        stats
    });
    let receiving = async {
        let association = server.accept().await.expect("it came");
        for number in 0..MESSAGES {
            assert_eq!(association.recv().await, Some(message(number)));
        }
        assert_eq!(association.recv().await, None);
        association.close().await;
        sender.await.expect("no panic")
    };
    let done = tokio::time::timeout(Duration::from_secs(60), receiving).await;
    let stats = done.expect("two megabytes within a minute");
    let used = stats.paths.iter().filter(|path| path.sent_bytes > BYTES as u64);
    assert_eq!(used.count(), 2, "{:?}", stats.paths);
}

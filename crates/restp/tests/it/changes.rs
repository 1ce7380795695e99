//! Services of a sealed connection change while data cross real sockets.

use crate::common::{PORT, loopback, noise, within};
use bytes::Bytes;
use restp::{Acceptance, Change, ChangeError, Composition, Endpoint, EndpointConfig, Trust, Why};

#[tokio::test]
async fn both_ends_of_a_running_transfer_come_to_other_services_and_every_byte_arrives() {
    let config = || EndpointConfig::new(Composition::default().check().expect("valid"));
    let server =
        Endpoint::bind(loopback(), config().listen(PORT, Acceptance::Any), Trust::Nobody).expect("bound");
    let key = server.public_key().expect("sealed");
    let client = Endpoint::bind(loopback(), config(), Trust::Key(key)).expect("bound");
    let sending = within("to connect", client.connect(server.local_addr(), PORT))
        .await
        .expect("connected");
    let receiving = within("to accept", server.accept()).await.expect("accepted");

    let data = noise(400_000);
    let half = data.len() / 2;
    within("room", sending.send(data.slice(..half)))
        .await
        .expect("sent");
    assert_eq!(sending.reconfigure([("congestion", "cubic")]), Ok(Change::Local));
    let agreed = sending.reconfigure([("ack", "positive+snack"), ("reliability", "harq")]);
    assert_eq!(agreed, Ok(Change::Agreed));
    let settled = sending.reconfigure([("framing", "fixed")]);
    assert!(
        matches!(settled, Err(ChangeError::Settled { key: "framing", .. })),
        "{settled:?}"
    );
    let receive = async {
        let mut got: Vec<u8> = Vec::new();
        while let Some(piece) = receiving.recv().await {
            got.extend_from_slice(&piece);
        }
        got
    };
    let send = async {
        for piece in data[half..].chunks(20_000) {
            sending.send(Bytes::copy_from_slice(piece)).await.expect("sent");
        }
        sending.finish();
    };
    let (got, ()) = within("everything", async { tokio::join!(receive, send) }).await;
    assert!(got == data, "every byte, once, in order");
    let told = sending.take_changes();
    let has = |key, to, why| {
        told.iter()
            .any(|changed| (changed.key, &*changed.to, changed.why) == (key, to, why))
    };
    assert!(has("congestion", "cubic", Why::Application), "{told:?}");
    assert!(has("reliability", "harq", Why::Application), "{told:?}");
    let told = receiving.take_changes();
    let peers = told
        .iter()
        .any(|changed| (changed.key, changed.why) == ("reliability", Why::Peer));
    assert!(peers, "{told:?}");
}

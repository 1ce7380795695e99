//! Congestion control from outside the workspace over real sockets.

use crate::common::{PORT, loopback, noise, within};
use bytes::Bytes;
use restp::algorithms::{
    Congestion, CongestionChoice, CongestionEvent, CongestionSnapshot, CustomCongestion, PathView, Rate,
};
use restp::{Acceptance, Composition, Endpoint, EndpointConfig, Trust};
use std::sync::{Arc, Mutex};

const DATA_BYTES: usize = 300_000;
const WINDOW_SEGMENTS: u64 = 2;

/// What the controller was told.
#[derive(Debug, Default)]
struct Told {
    acknowledged_bytes: u64,
    most_in_flight_bytes: u64,
}

/// A constant window that keeps account of its events.
#[derive(Debug)]
struct Constant {
    window_bytes: u64,
    told: Arc<Mutex<Told>>,
}

impl Congestion for Constant {
    fn on(&mut self, event: &CongestionEvent, path: &PathView<'_>) {
        let mut told = self.told.lock().expect("no panic while noting");
        told.most_in_flight_bytes = told.most_in_flight_bytes.max(path.in_flight_bytes);
        if let CongestionEvent::Acked { bytes, .. } = event {
            told.acknowledged_bytes += bytes;
        }
    }
    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }
    fn pacing(&self) -> Option<Rate> {
        None
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window_bytes,
            threshold_bytes: None,
            state: "constant",
        }
    }
}

#[tokio::test]
async fn a_controller_from_outside_sees_what_happens_and_its_window_binds() {
    let told = Arc::<Mutex<Told>>::default();
    let account = Arc::clone(&told);
    let constant = CustomCongestion::new("constant", move |segment_bytes| Constant {
        window_bytes: WINDOW_SEGMENTS * segment_bytes,
        told: Arc::clone(&account),
    });
    let composition = Composition {
        congestion: CongestionChoice::Custom(constant),
        mtu_discovery: false, // segments keep their size
        ..Composition::default()
    };
    let segment_bytes = u64::from(composition.segment_bytes);
    let own = EndpointConfig::new(composition.check().expect("valid"));
    let peers = EndpointConfig::new(Composition::default().check().expect("valid"));
    let server =
        Endpoint::bind(loopback(), peers.listen(PORT, Acceptance::Any), Trust::Nobody).expect("loopback");
    let client = Endpoint::bind(loopback(), own, Trust::Anybody).expect("loopback");
    let connection = within("connect", client.connect(server.local_addr(), PORT))
        .await
        .expect("served");
    let accepted = within("accept", server.accept()).await.expect("running");
    let reading = tokio::spawn(async move {
        let mut received = Vec::new();
        while received.len() < DATA_BYTES {
            received.extend(accepted.recv().await.expect("open"));
        }
        accepted.close().await;
        received
    });
    let data = noise(DATA_BYTES);
    for piece in data.chunks(10_000) {
        let sent = connection.send(Bytes::copy_from_slice(piece));
        within("send", sent).await.expect("open");
    }
    within("close", connection.close()).await;
    assert!(within("data", reading).await.expect("no panic") == data);
    let told = told.lock().expect("no panic while noting");
    assert_eq!(told.acknowledged_bytes, DATA_BYTES as u64, "{told:?}");
    // The last segment of what was written so far may be a small one.
    let window = (WINDOW_SEGMENTS - 1) * segment_bytes + 1..=WINDOW_SEGMENTS * segment_bytes;
    assert!(window.contains(&told.most_in_flight_bytes), "{told:?}");
}

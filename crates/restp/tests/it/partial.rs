//! Partial reliability over real sockets and an emulated path (ResTP §3.7): with blocks and with vectors of holes what
//! is retransmitted in time comes in order, and what is not in time is left out.

use crate::common::{Line, PORT, loopback, within};
use bytes::Bytes;
use restp::emulator::Report;
use restp::{Acceptance, Endpoint, EndpointConfig, FlowStats, Preset, Trust};

const FRAMES: u64 = 300;

/// `par-arq` with these acknowledgements; a hole is held this long.
fn config(ack: &str, hold: &str) -> EndpointConfig {
    let mut composition = Preset::named("par-arq").expect("a preset").composition();
    for (key, value) in [("ack", ack), ("hold", hold)] {
        composition.set(key, value).expect("a choice");
    }
    EndpointConfig::new(composition.check().expect("valid"))
}

/// What was heard of one call, and what speaker, listener and network counted.
struct Call {
    heard: Vec<u64>,
    speaker: FlowStats,
    listener: FlowStats,
    network: Report,
}

/// Speaks [`FRAMES`] numbered frames over a path with `keys`.
async fn call(ack: &str, hold: &str, keys: &str) -> Call {
    let listening = Endpoint::bind(
        loopback(),
        config(ack, hold).listen(PORT, Acceptance::Any),
        Trust::Nobody,
    );
    let listening = listening.expect("loopback");
    let line = Line::start(listening.local_addr(), keys);
    let speaking = Endpoint::bind(loopback(), config(ack, hold), Trust::Anybody).expect("loopback");
    let speaker = within("connect", speaking.connect(line.address, PORT))
        .await
        .expect("served");
    let accepted = within("accept", listening.accept()).await.expect("running");
    let speech = tokio::spawn(async move {
        for frame in 0..FRAMES {
            let mut data = [0; 160];
            data[..8].copy_from_slice(&frame.to_be_bytes());
            speaker.send(Bytes::copy_from_slice(&data)).await.expect("open");
        }
        speaker.finish();
        let end = speaker.recv().await;
        assert_eq!(end, None, "the listener says nothing");
        speaker.stats()
    });
    let mut heard = Vec::new();
    while let Some(data) = within("a frame or the end", accepted.recv()).await {
        assert_eq!(data.len(), 160, "a frame stays whole");
        heard.push(u64::from_be_bytes(data[..8].try_into().expect("a frame")));
    }
    let listener = accepted.stats();
    within("the end", accepted.close()).await;
    Call {
        heard,
        speaker: within("its end", speech).await.expect("no panic"),
        listener,
        network: line.stop().await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_retransmitted_in_time_comes_in_order() {
    let keys = "delay = \"5 ms\"\nloss = { drop = [5, 9, 11, 30, 31, 32, 80, 82, 85] }";
    for ack in ["positive+sack", "positive+snack"] {
        let call = call(ack, "30 s", keys).await;
        assert_eq!(call.heard, (0..FRAMES).collect::<Vec<_>>(), "{ack}");
        assert_eq!(call.network.paths[0].forward.dropped_error, 9, "{}", call.network);
        assert!(
            call.speaker.retransmitted_packets >= 9,
            "{ack}: {:?}",
            call.speaker
        );
        assert_eq!(call.listener.skipped_segments, 0, "{ack}");
    }
}

/// A hole is held for less than a round trip, so no retransmission can fill it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_in_time_is_left_out_and_nothing_else() {
    let keys = "delay = \"50 ms\"\nloss = { rate = 0.05 }";
    for ack in ["positive+sack", "positive+snack"] {
        let call = call(ack, "1 ms", keys).await;
        assert!(
            call.heard.windows(2).all(|pair| pair[0] < pair[1]),
            "{ack}: {:?}",
            call.heard
        );
        assert!(call.listener.skipped_segments > 0, "{ack}: {:?}", call.listener);
        let skipped = FRAMES - call.heard.len() as u64;
        assert_eq!(
            call.listener.skipped_segments, skipped,
            "{ack}: {:?}",
            call.listener
        );
        assert!(
            call.speaker.in_flight_segments == 0,
            "{ack}: skipped counts as acknowledged"
        );
    }
}

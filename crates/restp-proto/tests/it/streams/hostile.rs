//! A peer that says of streams what no peer of ours says: the flow is broken off, and nothing else happens.

use super::*;
use restp_base::flow::CloseReason;

/// What becomes of the acceptor's flow after `payload` as a segment of the opener.
fn after(payload: &[u8]) -> (Pair, FlowId, Option<CloseReason>) {
    let (mut pair, _, accepted) = connected(&[("mtu-discovery", "off")]);
    pair.forge(0, payload, |_| {});
    pair.run_for(MS * 5);
    let closed = pair.closed(1).cloned();
    (pair, accepted, closed)
}

#[test]
fn lies_break_off_the_flow_and_tell_the_peer() {
    let cases: &[(&str, &[u8])] = &[
        ("no frame of ours", b"\x00hello"),
        ("a number that is cut off", b"\x08\x80"),
        ("data beyond the segment", b"\x08\x00\x00\x05abc"),
        ("beyond the stream's credit", b"\x08\x00\x80\x01\x00\x00\x01x"),
        ("the 129th stream", b"\x08\x41\x00\x00\x01x"),
        ("a stream of ours that is none", b"\x08\x01\x00\x01x"),
        ("credit for one that is none", b"\x03\x03\x05"),
        ("bytes beyond the end", b"\x09\x00\x00\x01x\x08\x00\x01\x01x"),
        ("two ends", b"\x01\x00\x00\x05\x01\x00\x00\x06"),
    ];
    for (what, payload) in cases {
        let (pair, _, closed) = after(payload);
        assert_eq!(closed, Some(CloseReason::Aborted), "{what}");
        assert!(
            pair.log
                .iter()
                .any(|seen| seen.from == 1 && seen.header.flags.has(restp_proto::wire::Flags::RST))
        );
    }
}

#[test]
fn what_is_within_the_bounds_is_taken() {
    let (mut pair, accepted, closed) = after(b"\x08\x40\xFE\x00\x02hi\x05\x42\x00\x02\x02\x07");
    assert_eq!(closed, None);
    let opened = std::iter::from_fn(|| streams(&mut pair, 1, accepted).accept()).count();
    assert_eq!(opened, 128, "naming a stream opens all before it");
    assert_eq!(read_all(&mut pair, 1, accepted, StreamId(254)).0, b"hi");
    let write = streams(&mut pair, 1, accepted).write(StreamId(2), Bytes::from_static(b"x"));
    assert_eq!(write, Err(StreamWriteError::Stopped(7)));
}

#[test]
fn memory_stays_bounded_whatever_a_peer_sends_that_is_not_read() {
    let set = [("window", "800 segments"), ("stream-window", "64 KiB")];
    let (mut pair, flow, accepted) = connected(&set);
    let ids: Vec<_> = (0..100).map(|_| open(&mut pair, 0, flow)).collect();
    for _ in 0..400 {
        for id in &ids {
            let _ = streams(&mut pair, 0, flow).write(*id, text(*id, 5000));
        }
        pair.run_for(MS * 5);
        pair.log.clear();
    }
    let held = pair.ends[1].stats(accepted).expect("alive").memory_bytes;
    assert!(
        (1_000_000..1_500_000).contains(&held),
        "800 segments of 1400 bytes in all: {held}"
    );
}

//! Flow control per stream and in all, numbers of streams, shares of the send buffer (RFC 9000 §4).

use super::super::{INITIAL_BYTES, INITIAL_STREAM_BYTES, INITIAL_STREAMS};
use super::*;
use restp_base::streams::{StreamOpenError, StreamWriteError};

const MIB: usize = 1 << 20;

/// Writes as much as is taken, and carries it, until no more is.
fn fill(pair: &mut Pair, id: StreamId) -> usize {
    let mut written = 0;
    let piece = text(id.0, 10_000);
    loop {
        match pair.a.write(id, piece.clone()) {
            Ok(()) => written += piece.len(),
            Err(StreamWriteError::Blocked) if pair.a.is_empty() && pair.b.is_empty() => return written,
            Err(StreamWriteError::Blocked) => pair.settle(),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_reader_that_stalls_holds_its_window_and_stalls_no_other() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let (stalled, read) = (pair.a.open().unwrap(), pair.a.open().unwrap());
    fill(&mut pair, stalled);
    let held = pair.b.streams[&stalled].rx.memory();
    assert_eq!(held, MIB);
    let mut arrived = 0;
    for _ in 0..100 {
        if pair.a.write(read, text(1, 100_000)).is_ok() {
            pair.settle();
            arrived += read_all(&mut pair.b, read).0.len();
        }
    }
    assert_eq!(arrived, 100 * 100_000);
    assert_eq!(pair.b.streams[&stalled].rx.memory(), held);
    read_all(&mut pair.b, stalled);
    fill(&mut pair, stalled);
    assert_eq!(
        pair.b.streams[&stalled].rx.memory(),
        MIB,
        "its window opens when it is read"
    );
}

/// Two of them held all that there is, and no other stream went on, for good.
#[test]
fn readers_that_stall_leave_room_to_others() {
    let limits = StreamLimits {
        window_bytes: 4 << 20, // half of what there is for all
        ..StreamLimits::DEFAULT
    };
    for (at_once, opened_before) in [(false, true), (true, true), (false, false)] {
        let mut pair = Pair::new(limits);
        let read = pair.a.open().unwrap();
        let mut stalled = Vec::new();
        for _ in 0..39 {
            let id = pair.a.open().unwrap();
            stalled.push(id);
            if !opened_before {
                fill(&mut pair, id);
            }
        }
        for _ in 0..if at_once { 200 } else { 0 } {
            for id in &stalled {
                _ = pair.a.write(*id, text(id.0, 10_000));
            }
            pair.settle();
        }
        for id in &stalled {
            fill(&mut pair, *id);
        }
        let mut arrived = 0;
        while arrived < 10 * MIB {
            _ = pair.a.write(read, text(1, 16_000));
            pair.settle();
            let came = read_all(&mut pair.b, read).0.len();
            assert!(came > 0, "held up after {arrived} bytes");
            arrived += came;
        }
        let held = stalled.iter().map(|id| pair.b.streams[id].rx.memory()).max();
        assert!(held >= Some(INITIAL_STREAM_BYTES as usize) && held <= Some(4 * MIB));
    }
}

/// A quarter is for what streams may send without being told.
#[test]
fn twenty_streams_share_three_quarters_and_a_hundred_and_more_hold_all() {
    for (streams, held) in [(20, 5 * MIB..=6 * MIB), (128, 8 * MIB..=8 * MIB)] {
        let mut pair = Pair::new(StreamLimits::DEFAULT);
        let ids: Vec<_> = (0..streams).map(|_| pair.a.open().unwrap()).collect();
        for id in &ids {
            fill(&mut pair, *id);
        }
        let all = pair.b.streams.values().map(|stream| stream.rx.memory());
        let all = all.sum::<usize>();
        assert!(held.contains(&all), "{streams} streams hold {all}");
    }
}

#[test]
fn before_the_peer_has_spoken_the_first_bounds_hold() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let first = a.open().unwrap();
    a.write(first, text(1, 100_000)).unwrap();
    let sent = |a: &mut Streams| data_bytes(segments(a, 9999));
    let bytes = sent(&mut a);
    assert_eq!(bytes, INITIAL_STREAM_BYTES);
    for _ in 0..40 {
        let id = a.open().unwrap();
        a.write(id, text(1, 100_000)).unwrap();
    }
    assert_eq!(bytes + sent(&mut a), INITIAL_BYTES);
    let opened = std::iter::from_fn(|| a.open().ok()).count() as u64;
    assert_eq!(opened + 41, INITIAL_STREAMS);
    assert_eq!(a.open(), Err(StreamOpenError::Limit));
}

/// It waited for a round trip after the first 64 KiB.
#[test]
fn a_long_answer_waits_for_no_word_about_credit() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(0, 10)).unwrap();
    let asked = segments(&mut pair.a, 9);
    assert_eq!(asked.len(), 1, "the word leaves with the question");
    for segment in asked {
        pair.b.on_segment(segment).unwrap();
    }
    pair.b.write(id, text(1, 200_000)).unwrap();
    assert_eq!(data_bytes(segments(&mut pair.b, 9999)), 200_000);
}

#[test]
fn all_streams_together_hold_what_is_granted_in_all() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let ids: Vec<_> = (0..128).map(|_| pair.a.open().unwrap()).collect();
    for id in &ids {
        fill(&mut pair, *id);
    }
    assert_eq!(
        pair.b
            .streams
            .values()
            .map(|stream| stream.rx.memory())
            .sum::<usize>(),
        8 * MIB
    );
    let mut read = 0;
    for id in &ids {
        read += read_all(&mut pair.b, *id).0.len();
    }
    assert_eq!(read, 8 * MIB);
    pair.settle();
    assert!(
        pair.b.streams.values().any(|stream| stream.rx.memory() > 0),
        "it goes on"
    );
}

#[test]
fn a_thousand_streams_are_open_at_once_and_no_more_than_the_peer_takes() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let mut open = Vec::new();
    loop {
        match pair.a.open() {
            Ok(id) => {
                pair.a.write(id, text(id.0, 10)).unwrap();
                open.push(id);
            }
            Err(_) if pair.a.is_empty() && pair.b.is_empty() => break,
            Err(_) => pair.settle(),
        }
    }
    assert_eq!((open.len(), pair.b.open_streams()), (1024, 1024));
    events(&mut pair.a);
    // One that ends makes room for another: where few are left the peer hears of each.
    pair.a.reset(open[7], 0);
    pair.b.stop(open[7], 0);
    pair.b.reset(open[7], 0);
    pair.settle();
    assert_eq!(pair.a.read(open[7]), StreamRead::Reset(0));
    assert_eq!(
        events(&mut pair.a),
        [StreamEvent::Readable(open[7]), StreamEvent::Available]
    );
    assert!(pair.a.open().is_ok() && pair.a.open().is_err());
}

#[test]
fn the_send_buffer_is_shared_out_and_a_writer_is_woken() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let ids: Vec<_> = (0..64).map(|_| a.open().unwrap()).collect();
    for id in &ids {
        let taken = std::iter::from_fn(|| a.write(*id, text(1, 1000)).ok()).count();
        assert_eq!(taken, 17, "a share of 16 KiB, and the write that crosses it");
    }
    assert!(!a.has_events());
    segments(&mut a, 400);
    let woken = events(&mut a);
    assert!(woken.contains(&StreamEvent::Writable(ids[0])), "{woken:?}");
    assert!(a.write(ids[0], text(1, 1)).is_ok());
}

#[test]
fn an_older_word_about_credit_takes_nothing_back() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    for most in [500_000, 200_000] {
        let mut out = bytes::BytesMut::new();
        super::super::frame::Frame::StreamCredit { id, most }.emit(&mut out);
        pair.a.on_segment(out.freeze()).unwrap();
    }
    pair.a.write(id, text(1, 300_000)).unwrap();
    assert_eq!(data_bytes(segments(&mut pair.a, 9999)), 300_000);
}

#[test]
fn a_writer_that_waits_hears_that_its_direction_was_finished() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let id = a.open().unwrap();
    while a.write(id, text(1, 100_000)).is_ok() {}
    assert!(!a.has_events());
    a.finish(id);
    assert_eq!(events(&mut a), [StreamEvent::Writable(id)]);
    assert_eq!(a.write(id, text(1, 1)), Err(StreamWriteError::Closed));
}

#[test]
fn a_writer_is_woken_when_half_of_its_share_is_free() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let id = a.open().unwrap();
    let mut out = bytes::BytesMut::new();
    let most = 1 << 30;
    super::super::frame::Frame::StreamCredit { id, most }.emit(&mut out);
    a.on_segment(out.freeze()).unwrap();
    let mut waiting = 0;
    while a.write(id, text(1, 1000)).is_ok() {
        waiting += 1000;
    }
    while waiting > 128 * 1024 {
        assert!(!a.has_events(), "{waiting} bytes wait");
        waiting -= data_bytes(segments(&mut a, 1));
    }
    assert_eq!(events(&mut a), [StreamEvent::Writable(id)]);
}

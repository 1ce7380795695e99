//! Streams take turns (RFC 9000 §2.3).

use super::*;
use std::collections::BTreeMap;

/// Bytes of each stream among those that have arrived.
fn arrived(b: &mut Streams, ids: &[StreamId]) -> BTreeMap<StreamId, usize> {
    ids.iter().map(|id| (*id, read_all(b, *id).0.len())).collect()
}

#[test]
fn a_thousand_streams_get_the_same_beside_small_writers() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let (mut ids, mut got) = (Vec::new(), BTreeMap::new());
    let small = pair.a.open().unwrap();
    for round in 0..400 {
        while ids.len() < 1000
            && let Ok(id) = pair.a.open()
        {
            ids.push(id);
        }
        for id in &ids {
            while pair.a.write(*id, text(id.0, 3000)).is_ok() {}
        }
        // 300 bytes in each segment, so that turns end in the middle of one.
        let _ = pair.a.write(small, text(0, 300));
        pair.carry(64);
        if round >= 50 {
            for (id, bytes) in arrived(&mut pair.b, &ids) {
                *got.entry(id).or_insert(0) += bytes;
            }
        } else {
            arrived(&mut pair.b, &ids);
        }
        read_all(&mut pair.b, small);
    }
    assert_eq!(ids.len(), 1000);
    let (least, most) = (got.values().min().unwrap(), got.values().max().unwrap());
    assert!(*least > 20_000 && most - least <= 1400 * 2, "{least} to {most}");
}

#[test]
fn a_stream_with_little_to_say_waits_one_round() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let bulk: Vec<_> = (0..10).map(|_| a.open().unwrap()).collect();
    for id in &bulk {
        a.write(*id, text(1, 50_000)).unwrap();
    }
    segments(&mut a, 3);
    let talk = a.open().unwrap();
    a.write(talk, text(2, 20)).unwrap();
    let mut b = end(false, StreamLimits::DEFAULT);
    let needed = segments(&mut a, 99).into_iter().position(|segment| {
        b.on_segment(segment).unwrap();
        b.streams.get(&talk).is_some_and(|stream| stream.rx.memory() > 0)
    });
    assert!(needed.is_some_and(|needed| needed <= 11), "{needed:?}");
}

#[test]
fn what_a_stream_leaves_of_its_turn_is_not_the_turn_of_the_next() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let ids: Vec<_> = (0..3).map(|_| a.open().unwrap()).collect();
    a.write(ids[0], text(0, 300)).unwrap();
    for id in &ids[1..] {
        a.write(*id, text(1, 5000)).unwrap();
    }
    let mut cut = Vec::new();
    for mut segment in segments(&mut a, 3) {
        while !segment.is_empty() {
            if let Ok(Frame::Data { id, data, .. }) = Frame::parse(&mut segment) {
                cut.push((id, data.len()));
            }
        }
    }
    let second = cut.iter().skip(1).take_while(|(id, _)| *id == ids[1]);
    assert_eq!(second.map(|(_, size)| size).sum::<usize>(), ROOM, "{cut:?}");
}

#[test]
fn a_segment_does_not_end_with_a_few_bytes_of_another_stream() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let (first, second) = (a.open().unwrap(), a.open().unwrap());
    for id in [first, second] {
        a.write(id, text(0, 1)).unwrap();
    }
    segments(&mut a, 9); // what is said about their windows is said
    a.write(first, text(0, ROOM - 50)).unwrap();
    a.write(second, text(1, 5000)).unwrap();
    let sizes: Vec<_> = segments(&mut a, 2).iter().map(Bytes::len).collect();
    assert_eq!(sizes, [ROOM - 50 + 5, ROOM]);
}

#[test]
fn streams_that_are_broken_off_while_they_wait_leave_the_turns_of_the_others() {
    let mut a = end(true, StreamLimits::DEFAULT);
    let ids: Vec<_> = (0..100).map(|_| a.open().unwrap()).collect();
    for id in &ids {
        a.write(*id, text(id.0, 1000)).unwrap();
    }
    let left: Vec<_> = ids.iter().copied().filter(|id| id.ordinal() % 3 == 1).collect();
    for id in ids.iter().rev().filter(|id| !left.contains(id)) {
        a.reset(*id, 0);
    }
    let mut turns = Vec::new();
    for mut segment in segments(&mut a, 99) {
        while !segment.is_empty() {
            if let Ok(Frame::Data { id, .. }) = Frame::parse(&mut segment) {
                turns.push(id);
            }
        }
    }
    turns.dedup();
    assert_eq!(turns, left);
}

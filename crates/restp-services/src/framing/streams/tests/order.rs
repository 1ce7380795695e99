//! Order, ends, half-close, break-off (RFC 9000 §2, §3).

use super::*;
use restp_base::streams::StreamWriteError;

#[test]
fn each_stream_is_in_order_whatever_the_order_of_segments() {
    for seed in 1..=20 {
        let mut pair = Pair::shuffled(seed);
        let ids: Vec<_> = (0..7).map(|_| pair.a.open().unwrap()).collect();
        for id in &ids {
            pair.a
                .write(*id, text(id.0, 30_000 + 777 * id.0 as usize))
                .unwrap();
            pair.a.finish(*id);
        }
        pair.settle();
        assert_eq!(events(&mut pair.b)[0], StreamEvent::Opened);
        for id in &ids {
            assert_eq!(pair.b.accept(), Some(*id));
            let (read, end) = read_all(&mut pair.b, *id);
            assert_eq!(
                (read, end),
                (text(id.0, 30_000 + 777 * id.0 as usize).to_vec(), StreamRead::End)
            );
        }
        assert_eq!(pair.b.accept(), None);
    }
}

#[test]
fn what_is_missing_of_one_stream_holds_up_no_other() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let (slow, fast) = (pair.a.open().unwrap(), pair.a.open().unwrap());
    pair.a.write(slow, text(1, 1000)).unwrap();
    let lost = segments(&mut pair.a, 1);
    for id in [slow, fast] {
        pair.a.write(id, text(2, 5000)).unwrap();
    }
    pair.settle();
    assert_eq!(read_all(&mut pair.b, slow), (vec![], StreamRead::Empty));
    assert_eq!(read_all(&mut pair.b, fast).0, text(2, 5000));
    for segment in lost {
        pair.b.on_segment(segment).unwrap();
    }
    assert_eq!(
        read_all(&mut pair.b, slow).0,
        [text(1, 1000), text(2, 5000)].concat()
    );
}

#[test]
fn the_directions_end_by_themselves_and_a_stream_that_is_over_is_forgotten() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(3, 10)).unwrap();
    pair.a.finish(id);
    assert_eq!(pair.a.write(id, text(3, 1)), Err(StreamWriteError::Closed));
    pair.settle();
    assert_eq!(pair.b.accept(), Some(id));
    assert_eq!(read_all(&mut pair.b, id), (text(3, 10).to_vec(), StreamRead::End));
    pair.b.write(id, text(4, 20)).unwrap();
    pair.settle();
    assert_eq!(
        read_all(&mut pair.a, id),
        (text(4, 20).to_vec(), StreamRead::Empty)
    );
    pair.b.finish(id);
    assert_eq!((pair.a.open_streams(), pair.b.open_streams()), (1, 0));
    assert_eq!(pair.b.counts(), StreamCounts { open: 0, opened: 1 });
    pair.settle();
    assert_eq!(events(&mut pair.a).last(), Some(&StreamEvent::Readable(id)));
    assert_eq!(pair.a.read(id), StreamRead::End);
    assert_eq!(pair.a.open_streams(), 0);
}

#[test]
fn a_broken_off_direction_says_so_with_its_code_and_the_other_goes_on() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(5, 3000)).unwrap();
    pair.carry(1);
    pair.a.reset(id, 42);
    pair.settle();
    assert_eq!(pair.b.read(id), StreamRead::Reset(42));
    pair.b.write(id, text(6, 100)).unwrap();
    pair.b.finish(id);
    pair.settle();
    assert_eq!(
        read_all(&mut pair.a, id),
        (text(6, 100).to_vec(), StreamRead::End)
    );
    assert_eq!((pair.a.open_streams(), pair.b.open_streams()), (0, 0));
}

#[test]
fn data_that_arrive_after_the_break_off_are_dropped_and_booked() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(5, 3000)).unwrap();
    let late = segments(&mut pair.a, 9);
    pair.a.reset(id, 1);
    pair.settle();
    late.into_iter()
        .for_each(|segment| pair.b.on_segment(segment).unwrap());
    assert_eq!(pair.b.read(id), StreamRead::Reset(1));
    assert_eq!((pair.b.credit.used(), pair.b.credit.consumed()), (3000, 3000));
}

#[test]
fn who_stops_reading_ends_the_writing() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    while pair.a.write(id, text(7, 50_000)).is_ok() {}
    pair.carry(5);
    pair.b.stop(id, 9);
    pair.settle();
    assert_eq!(pair.a.write(id, text(7, 1)), Err(StreamWriteError::Stopped(9)));
    assert_eq!(
        events(&mut pair.a),
        [StreamEvent::Writable(id)],
        "its writer waited"
    );
    pair.b.finish(id);
    pair.settle();
    assert_eq!(pair.a.read(id), StreamRead::End);
    assert_eq!((pair.a.open_streams(), pair.b.open_streams()), (0, 0));
    assert_eq!(
        pair.b.credit.used(),
        pair.b.credit.consumed(),
        "all that came makes room"
    );
    assert_eq!(pair.b.pieces, 0);
}

#[test]
fn a_writer_that_has_finished_need_not_hear_that_nobody_reads() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(7, 60_000)).unwrap();
    pair.a.finish(id);
    segments(&mut pair.a, 1)
        .into_iter()
        .for_each(|segment| pair.b.on_segment(segment).unwrap());
    pair.b.stop(id, 9);
    pair.b.reset(id, 3);
    segments(&mut pair.b, 9)
        .into_iter()
        .for_each(|segment| pair.a.on_segment(segment).unwrap());
    assert_eq!(pair.a.read(id), StreamRead::Reset(3));
    assert_eq!(data_bytes(segments(&mut pair.a, 99)), 0, "the rest was dropped");
    assert_eq!(pair.a.open_streams(), 0);
}

#[test]
fn pieces_of_a_stream_that_nobody_reads_are_not_held() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(8, 20_000)).unwrap();
    let all = segments(&mut pair.a, 99);
    for segment in all.iter().skip(1) {
        pair.b.on_segment(segment.clone()).unwrap();
    }
    assert!(pair.b.pieces > 10);
    pair.b.stop(id, 0);
    assert_eq!(pair.b.pieces, 0);
    pair.b.on_segment(all[0].clone()).unwrap();
    assert_eq!((pair.b.pieces, pair.b.read(id)), (0, StreamRead::Lost));
}

#[test]
fn a_flow_that_is_finished_ends_when_all_streams_are_over() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(9, 5)).unwrap();
    pair.a.finish_all();
    assert!(pair.a.open().is_err() && !pair.a.may_end());
    pair.a.finish(id);
    pair.settle();
    assert!(!pair.a.may_end(), "the peer may still write");
    pair.b.finish(id);
    pair.settle();
    assert!(!pair.a.may_end(), "the end was not read");
    assert_eq!(pair.a.read(id), StreamRead::End);
    assert!(pair.a.may_end() && !pair.b.may_end());
}

#[test]
fn an_application_that_is_gone_leaves_what_it_has_finished() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let (done, open) = (pair.a.open().unwrap(), pair.a.open().unwrap());
    for id in [done, open] {
        pair.a.write(id, text(id.0, 9000)).unwrap();
    }
    pair.a.finish(done);
    pair.a.finish_all();
    pair.a.discard();
    pair.settle();
    assert_eq!(
        read_all(&mut pair.b, done),
        (text(done.0, 9000).to_vec(), StreamRead::End)
    );
    assert_eq!(pair.b.write(open, text(0, 1)), Err(StreamWriteError::Stopped(0)));
    assert_eq!(pair.b.read(open), StreamRead::Reset(0));
    pair.settle();
    assert!(pair.a.may_end());
    let refused = pair.b.open().unwrap();
    pair.b.write(refused, text(0, 1)).unwrap();
    pair.settle();
    assert_eq!(
        pair.b.write(refused, text(0, 1)),
        Err(StreamWriteError::Stopped(0))
    );
    assert_eq!(events(&mut pair.a), [], "nobody is there to be told");
}

#[test]
fn when_the_flow_ends_what_is_in_order_is_read_and_the_rest_is_lost() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let (half, whole) = (pair.a.open().unwrap(), pair.a.open().unwrap());
    for id in [half, whole] {
        pair.a.write(id, text(id.0, 100)).unwrap();
    }
    pair.a.finish(whole);
    pair.settle();
    events(&mut pair.b);
    pair.b.on_flow_end();
    assert_eq!(
        read_all(&mut pair.b, half),
        (text(half.0, 100).to_vec(), StreamRead::Lost)
    );
    assert_eq!(
        read_all(&mut pair.b, whole),
        (text(whole.0, 100).to_vec(), StreamRead::End)
    );
    assert_eq!(pair.b.write(half, text(0, 1)), Err(StreamWriteError::Closed));
    assert!(pair.b.is_empty() && pair.b.open().is_err());
}

/// What the stream had ready was still counted when turns had ended with the flow.
#[test]
fn streams_that_wait_to_send_are_ended_after_their_flow() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let (first, second) = (pair.a.open().unwrap(), pair.a.open().unwrap());
    for id in [first, second] {
        pair.a.write(id, text(id.0, 9000)).unwrap();
    }
    pair.a.on_flow_end();
    pair.a.reset(first, 0);
    pair.a.finish(second);
    assert_eq!(pair.a.write(second, text(0, 1)), Err(StreamWriteError::Closed));
    assert!(pair.a.bytes() == 0 && pair.a.next_segment(ROOM).is_none());
}

/// What was read made room, and frames about that waited in a flow that had ended.
#[test]
fn what_is_read_after_the_flow_grants_nothing() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    for _ in 0..10 {
        let _ = pair.a.write(id, text(0, 60_000));
        pair.settle();
    }
    pair.b.on_flow_end();
    assert!(read_all(&mut pair.b, id).0.len() > 500_000);
    assert!(pair.b.is_empty() && pair.b.open_streams() == 0);
}

#[test]
fn streams_that_end_after_the_flow_make_room_for_none() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let mut ids = Vec::new();
    while ids.len() < 600 {
        match pair.a.open() {
            Ok(id) => {
                pair.a.write(id, text(id.0, 1)).unwrap();
                ids.push(id);
            }
            Err(_) => pair.settle(),
        }
    }
    pair.settle();
    pair.b.on_flow_end();
    for id in ids {
        assert_eq!(
            read_all(&mut pair.b, id),
            (text(id.0, 1).to_vec(), StreamRead::Lost)
        );
    }
    assert!(pair.b.is_empty() && pair.b.open_streams() == 0);
}

#[test]
fn pieces_that_wait_when_the_flow_ends_are_dropped() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(8, 20_000)).unwrap();
    for segment in segments(&mut pair.a, 99).into_iter().skip(1) {
        pair.b.on_segment(segment).unwrap();
    }
    assert!(pair.b.pieces > 10);
    pair.b.on_flow_end();
    let rx = &pair.b.streams[&id].rx;
    assert_eq!((rx.pieces(), rx.memory(), pair.b.pieces), (0, 0, 0));
    pair.b.stop(id, 0);
    assert_eq!(pair.b.read(id), StreamRead::Lost);
}

/// Booked by neither end of a stream, bytes would be lacking in the credit of all.
#[test]
fn what_arrives_after_reading_was_stopped_is_booked_and_makes_room() {
    for fin in [false, true] {
        let mut pair = Pair::new(StreamLimits::DEFAULT);
        let id = pair.a.open().unwrap();
        pair.a.write(id, text(5, 3000)).unwrap();
        if fin {
            pair.a.finish(id);
        }
        let mut late = segments(&mut pair.a, 9);
        pair.b.on_segment(late.remove(0)).unwrap();
        pair.b.stop(id, 1);
        pair.b.finish(id);
        for segment in late {
            pair.b.on_segment(segment).unwrap();
        }
        assert_eq!((pair.b.credit.used(), pair.b.credit.consumed()), (3000, 3000));
        pair.settle();
        assert_eq!(pair.b.open_streams(), 0);
    }
}

#[test]
fn a_break_off_that_overtakes_the_last_bytes_makes_room_for_them() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(5, 3000)).unwrap();
    let mut late = segments(&mut pair.a, 9);
    pair.b.on_segment(late.remove(0)).unwrap();
    pair.b.stop(id, 1);
    pair.b.finish(id);
    pair.settle();
    assert_eq!((pair.b.credit.used(), pair.b.credit.consumed()), (3000, 3000));
    for segment in late {
        pair.b.on_segment(segment).unwrap();
    }
    assert_eq!((pair.b.credit.used(), pair.b.open_streams()), (3000, 0));
}

#[test]
fn each_time_that_streams_are_opened_it_is_told() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    for _ in 0..3 {
        let ids = [pair.a.open().unwrap(), pair.a.open().unwrap()];
        for id in ids {
            pair.a.write(id, Bytes::new()).unwrap();
            pair.a.finish(id);
        }
        pair.settle();
        let opened = events(&mut pair.b)
            .into_iter()
            .filter(|event| *event == StreamEvent::Opened);
        assert_eq!(opened.count(), 1);
        assert_eq!(
            [pair.b.accept(), pair.b.accept(), pair.b.accept()],
            [Some(ids[0]), Some(ids[1]), None]
        );
    }
}

#[test]
fn a_flow_does_not_end_before_the_last_end_has_left() {
    let mut pair = Pair::new(StreamLimits::DEFAULT);
    let id = pair.a.open().unwrap();
    pair.a.write(id, text(9, 5)).unwrap();
    pair.settle();
    pair.b.finish(id);
    pair.settle();
    assert_eq!(pair.a.read(id), StreamRead::End);
    pair.a.finish_all();
    pair.a.finish(id);
    assert!(pair.a.open_streams() == 0 && !pair.a.may_end());
    segments(&mut pair.a, 1);
    assert!(pair.a.may_end());
}

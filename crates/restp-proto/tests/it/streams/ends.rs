//! How streams end, and the flow with them.

use super::*;
use restp_base::flow::{CloseReason, Read, WriteError};
use restp_base::streams::StreamOpenError;

#[test]
fn a_flow_carries_nothing_beside_its_streams() {
    let (mut pair, flow, _) = connected(&[]);
    assert_eq!(
        pair.ends[0].write(pair.now, flow, Bytes::from_static(b"x")),
        Err(WriteError::Streams)
    );
    assert_eq!(pair.ends[0].read(pair.now, flow), Read::Empty);
    let mut plain = Pair::new("cubic", &[]);
    let (flow, _) = plain.connect();
    assert!(plain.ends[0].streams(plain.now, flow).is_none());
}

#[test]
fn half_close_and_answer() {
    let (mut pair, flow, accepted) = connected(&[]);
    let id = open(&mut pair, 0, flow);
    streams(&mut pair, 0, flow).write(id, text(id, 10)).unwrap();
    streams(&mut pair, 0, flow).finish(id);
    pair.run_for(MS * 50);
    assert!(told(&pair, 1, StreamEvent::Opened) && told(&pair, 1, StreamEvent::Readable(id)));
    assert_eq!(
        read_all(&mut pair, 1, accepted, id),
        (text(id, 10).to_vec(), StreamRead::End)
    );
    streams(&mut pair, 1, accepted).write(id, text(id, 20)).unwrap();
    pair.run_for(MS * 50);
    assert_eq!(
        read_all(&mut pair, 0, flow, id),
        (text(id, 20).to_vec(), StreamRead::Empty)
    );
    streams(&mut pair, 1, accepted).finish(id);
    pair.run_for(MS * 50);
    assert_eq!(read_all(&mut pair, 0, flow, id), (vec![], StreamRead::End));
    assert_eq!(streams(&mut pair, 0, flow).open_streams(), 0);
}

#[test]
fn a_break_off_reaches_the_reader_and_a_stop_the_writer() {
    let (mut pair, flow, accepted) = connected(&[]);
    let (reset, stopped) = (open(&mut pair, 0, flow), open(&mut pair, 0, flow));
    for id in [reset, stopped] {
        streams(&mut pair, 0, flow).write(id, text(id, 3000)).unwrap();
    }
    pair.run_for(MS * 50);
    streams(&mut pair, 0, flow).reset(reset, 77);
    streams(&mut pair, 1, accepted).stop(stopped, 5);
    pair.run_for(MS * 50);
    assert_eq!(streams(&mut pair, 1, accepted).read(reset), StreamRead::Reset(77));
    let write = streams(&mut pair, 0, flow).write(stopped, text(stopped, 1));
    assert_eq!(write, Err(StreamWriteError::Stopped(5)));
}

#[test]
fn a_flow_finishes_when_both_ends_want_it_and_every_stream_is_over() {
    let (mut pair, flow, accepted) = connected(&[]);
    let mut exchange = Exchange::new(&mut pair, flow, 4, 30_000);
    exchange.step(&mut pair, (flow, accepted), MS * 5);
    pair.ends[0].finish(pair.now, flow);
    assert_eq!(streams(&mut pair, 0, flow).open(), Err(StreamOpenError::Closed));
    exchange.complete(&mut pair, (flow, accepted), Duration::from_secs(5));
    assert_eq!(
        pair.ends[1].read(pair.now, accepted),
        Read::Empty,
        "the other direction is open"
    );
    for (id, ..) in &exchange.got {
        streams(&mut pair, 1, accepted).finish(*id);
    }
    pair.run_for(MS * 50);
    for (id, ..) in &exchange.got {
        assert_eq!(streams(&mut pair, 0, flow).read(*id), StreamRead::End);
    }
    pair.run_for(MS * 50);
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
    assert!(pair.events[1].contains(&Event::Readable(accepted)));
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(MS * 50);
    assert_eq!(
        (pair.closed(0), pair.closed(1)),
        (Some(&CloseReason::Finished), Some(&CloseReason::Finished))
    );
}

#[test]
fn a_stream_opened_into_the_end_is_lost_and_says_so() {
    let (mut pair, flow, accepted) = connected(&[]);
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(MS * 5);
    let late = open(&mut pair, 1, accepted);
    streams(&mut pair, 1, accepted)
        .write(late, text(late, 10))
        .unwrap();
    pair.run_for(MS * 100);
    assert_eq!(streams(&mut pair, 1, accepted).read(late), StreamRead::Lost);
    assert_eq!(
        streams(&mut pair, 1, accepted).write(late, text(late, 1)),
        Err(StreamWriteError::Closed)
    );
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(MS * 100);
    assert_eq!(
        (pair.closed(0), pair.closed(1)),
        (Some(&CloseReason::Finished), Some(&CloseReason::Finished))
    );
}

#[test]
fn what_has_arrived_of_a_broken_flow_is_read_and_the_rest_is_lost() {
    let (mut pair, flow, accepted) = connected(&[]);
    let id = open(&mut pair, 0, flow);
    streams(&mut pair, 0, flow).write(id, text(id, 2000)).unwrap();
    pair.run_for(MS * 50);
    pair.ends[0].abort(pair.now, flow);
    pair.run_for(MS * 50);
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
    assert_eq!(
        read_all(&mut pair, 1, accepted, id),
        (text(id, 2000).to_vec(), StreamRead::Lost)
    );
    assert_eq!(streams(&mut pair, 0, flow).read(id), StreamRead::Lost);
}

#[test]
fn a_released_flow_delivers_what_was_finished() {
    let (mut pair, flow, accepted) = connected(&[]);
    let id = open(&mut pair, 0, flow);
    streams(&mut pair, 0, flow).write(id, text(id, 50_000)).unwrap();
    streams(&mut pair, 0, flow).finish(id);
    pair.ends[0].finish(pair.now, flow);
    pair.ends[0].release(pair.now, flow);
    pair.run_for(MS * 500);
    assert_eq!(
        read_all(&mut pair, 1, accepted, id),
        (text(id, 50_000).to_vec(), StreamRead::End)
    );
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(MS * 500);
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
}

/// Answers to a stream that the peer had opened into this end's FIN left behind it: the peer takes nothing there, so the flow
/// asked for acknowledgements that never come, and over two paths it stayed for ever once the first FIN was lost.
fn nothing_leaves_behind_the_fin(mut pair: Pair, flow: FlowId, accepted: FlowId) {
    pair.ends[0].finish(pair.now, flow);
    pair.ends[0].release(pair.now, flow);
    pair.run_for(MS * 2);
    for _ in 0..40 {
        let late = open(&mut pair, 1, accepted);
        streams(&mut pair, 1, accepted)
            .write(late, text(late, 10))
            .expect("room to write");
    }
    pair.run_for(MS * 500);
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
    let from_released = pair.log.iter().filter(|seen| seen.from == 0 && seen.is_data());
    assert_eq!(from_released.count(), 0);
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(
        (pair.closed(0), pair.closed(1)),
        (Some(&CloseReason::Finished), Some(&CloseReason::Finished))
    );
}

#[test]
fn a_released_end_that_has_finished_answers_no_stream() {
    let (mut pair, flow, accepted) = connected(&[]);
    pair.log.clear();
    nothing_leaves_behind_the_fin(pair, flow, accepted);
}

#[test]
fn a_released_end_over_two_paths_answers_no_stream_though_its_first_fin_is_lost() {
    let set = [crate::common::lines::SPREAD, STREAMS].concat();
    let (mut pair, flow, _) = crate::common::lines::two_paths("geo-spread", &set);
    let accepted = crate::common::lines::both_up(&mut pair);
    pair.log.clear();
    let mut left = 1;
    pair.rule = Box::new(move |seen| {
        let is_end = seen.from == 0 && seen.header.dss.as_ref().is_some_and(|dss| dss.fin);
        if is_end && std::mem::take(&mut left) > 0 {
            return Verdict::Drop;
        }
        Verdict::Pass
    });
    nothing_leaves_behind_the_fin(pair, flow, accepted);
}

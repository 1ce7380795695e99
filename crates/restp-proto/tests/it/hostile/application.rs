//! Applications that ask at the wrong time or for what is not there, and drivers with odd clocks.

use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId, Read, WriteError};
use restp_base::machine::{Event, Input, Machine};
use restp_base::time::Duration;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn flows_that_do_not_exist_can_be_asked_for_anything() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    pair.ends[0].abort(pair.now, flow);
    pair.run_for(secs(1));
    pair.ends[0].release(pair.now, flow);
    pair.run_for(secs(1));
    let (again, _) = (pair.open(), pair.run_for(secs(1)));
    assert_ne!(again, flow, "the place is taken again, the name is not");
    assert_eq!(again.0 as u32, flow.0 as u32);
    for unknown in [flow, FlowId(u64::MAX), FlowId(77), FlowId(1 << 40)] {
        let (end, now) = (&mut pair.ends[0], pair.now);
        assert_eq!(end.write(now, unknown, "x".into()), Err(WriteError::Closed));
        assert_eq!(end.read(now, unknown), Read::End);
        end.finish(now, unknown);
        end.abort(now, unknown);
        end.release(now, unknown);
        assert_eq!(end.stats(unknown), None);
    }
    pair.run_for(secs(1));
    assert_eq!(
        pair.events[0].last(),
        Some(&Event::Connected(again)),
        "nothing happened to the new one"
    );
    assert_ne!(pair.closed(1), None);
    pair.ends[1].release(pair.now, accepted);
}

#[test]
fn writes_that_cannot_be_are_refused_by_name() {
    let mut pair = Pair::new("3wh-arq", &[("framing", "fixed"), ("segment", "1400 B")]);
    let (flow, accepted) = pair.connect();
    let mut write = |bytes: usize| pair.ends[0].write(pair.now, flow, vec![1; bytes].into());
    assert_eq!(write(0), Err(WriteError::Empty));
    assert_eq!(
        write(1401),
        Err(WriteError::TooLarge {
            size: 1401,
            limit: 1400
        })
    );
    assert_eq!(write(1400), Ok(()));
    pair.ends[0].finish(pair.now, flow);
    pair.ends[0].finish(pair.now, flow);
    assert_eq!(
        pair.ends[0].write(pair.now, flow, "x".into()),
        Err(WriteError::Closed)
    );
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(1, accepted).len(), 1);
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
}

#[test]
fn an_empty_write_into_a_stream_is_nothing_and_an_empty_datagram_is_one() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    pair.write(0, flow, b"");
    pair.run_for(secs(1));
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::Empty);
    for set in [&[][..], &[("connection", "three-way")]] {
        let mut pair = Pair::new("unrel", set);
        let flow = pair.open();
        pair.write(0, flow, b"");
        pair.write(0, flow, b"x");
        pair.run_for(secs(1));
        let accepted = pair.accepted().unwrap();
        assert_eq!(pair.read_all(1, accepted), [&b""[..], b"x"], "{set:?}");
    }
}

#[test]
fn a_full_send_buffer_blocks_and_says_when_it_has_room() {
    let mut pair = Pair::new("3wh-arq", &[("send-buffer", "10000 B")]);
    let (flow, accepted) = pair.connect();
    let mut written = 0;
    while pair.ends[0].write(pair.now, flow, noise(3000).into()).is_ok() {
        written += 3000;
    }
    assert_eq!(written, 12_000, "the write that crosses the limit is the last");
    assert_eq!(
        pair.ends[0].write(pair.now, flow, noise(1).into()),
        Err(WriteError::Blocked)
    );
    pair.run_for(secs(1));
    let writable = pair.events[0]
        .iter()
        .filter(|event| **event == Event::Writable(flow));
    assert_eq!(writable.count(), 1);
    assert_eq!(pair.read_all(1, accepted).concat().len(), 12_000);
}

#[test]
fn a_clock_that_stands_still_sends_what_is_due_once_and_no_more() {
    let mut pair = Pair::new("default", &[]);
    let (flow, _) = pair.connect();
    pair.write(0, flow, &noise(100_000));
    pair.run_for(Duration::ZERO);
    let sent = pair.log.len();
    for _ in 0..1000 {
        pair.ends[0].handle(pair.now, Input::Deadline);
        pair.run_for(Duration::ZERO);
    }
    assert_eq!(pair.log.len(), sent);
    let due = pair.ends[0].next_deadline().unwrap().0;
    assert!(due > pair.now, "{due:?} is not after {:?}", pair.now);
}

#[test]
fn a_clock_that_jumps_hours_ahead_ends_the_connection_with_its_reason() {
    for preset in ["cubic", "3wh-arq", "arq-only"] {
        let mut pair = Pair::new(preset, &[]);
        let (flow, _) = pair.connect();
        pair.rule = Box::new(|_| Verdict::Drop);
        pair.write(0, flow, &noise(100_000));
        pair.run_for(Duration::from_millis(15));
        pair.rule = Box::new(|_| Verdict::Pass);
        let later = pair.now + secs(36_000);
        for end in &mut pair.ends {
            end.handle(later, Input::Deadline);
        }
        pair.now = later;
        pair.run_for(secs(600));
        let wakeups = pair.wakeups;
        assert!(wakeups < 2_000, "{preset}: {wakeups} wakeups");
        for side in 0..2 {
            let reason = pair.closed(side);
            assert!(
                matches!(reason, Some(CloseReason::TimedOut(_) | CloseReason::Reset)),
                "{preset}: {reason:?}"
            );
        }
    }
}

#[test]
fn a_flow_is_announced_before_anything_happens_to_it_and_nothing_follows_its_end() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = {
        // The acknowledgement that completes the exchange is lost: data completes it.
        let mut first = true;
        Box::new(move |seen| {
            let lost = seen.from == 0 && seen.is(restp_proto::wire::Flags::ACK) && std::mem::take(&mut first);
            if lost { Verdict::Drop } else { Verdict::Pass }
        })
    };
    let flow = pair.open();
    pair.write(0, flow, b"x");
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(4));
    let accepted = pair.accepted().unwrap();
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(secs(4));
    assert_eq!(
        pair.events[1],
        [
            Event::Accepted(accepted),
            Event::Readable(accepted),
            Event::Closed(accepted, CloseReason::Finished)
        ]
    );
    assert_eq!(pair.events[0].first(), Some(&Event::Connected(flow)));
    assert_eq!(
        pair.events[0].last(),
        Some(&Event::Closed(flow, CloseReason::Finished))
    );
    assert_eq!(
        pair.read_all(1, accepted),
        [&b"x"[..]],
        "what arrived before the end can still be read"
    );
}

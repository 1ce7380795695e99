//! Stories of the sliding window code (RFC 8681) under partial reliability: telephony over paths where a retransmission comes too
//! late, and where it does not.

use crate::common::call::Call;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowStats};
use restp_base::machine::Event;
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::wire::{ErrorControl, Fec, Flags};

/// A frame is of use for 200 ms.
const VOICE: &[(&str, &str)] = &[("reliability", "partial+fec"), ("deadline", "200 ms")];
/// A round trip of 250 ms: a retransmission comes after 395 ms.
const FAR: Duration = Duration::from_millis(125);
const NEAR: Duration = Duration::from_millis(30);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Loses packets of side 0, of any kind, at random.
fn lossy(share: f64) -> Rule {
    let mut draw = Stream::named(7, "rlc");
    Box::new(move |seen| {
        if seen.from == 0 && draw.chance(share) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

fn stats(call: &Call) -> [FlowStats; 2] {
    [(0, call.flow), (1, call.accepted)].map(|(side, flow)| call.pair.ends[side].stats(flow).expect("a flow"))
}

/// Segments and encoded packets that left.
fn sent(call: &Call) -> (usize, usize) {
    let of_side = || call.pair.log.iter().filter(|seen| seen.from == 0);
    let data = of_side().filter(|seen| seen.is_data()).count();
    (data, of_side().filter(|seen| seen.is_encoded()).count())
}

#[test]
fn frames_are_rebuilt_in_time_where_a_retransmission_is_too_late() {
    let mut call = Call::over(FAR, VOICE);
    call.pair.rule = lossy(0.05);
    call.speak(3000);
    let in_time = call.heard.iter().filter(|(_, delay)| *delay <= ms(200)).count();
    assert!(in_time >= 2979, "{in_time} of 3000 (99.3 %)");
    let (data, encoded) = sent(&call);
    assert_eq!(data, 3000, "what would come too late does not leave again");
    assert!(
        (1300..=1500).contains(&encoded),
        "{encoded}: one behind every second frame"
    );
    let [speaker, listener] = stats(&call);
    assert_eq!(speaker.retransmitted_packets, 0);
    assert!(listener.repaired_packets > 120, "{}", listener.repaired_packets);
}

#[test]
fn nothing_is_encoded_where_a_retransmission_is_in_time() {
    let mut call = Call::over(NEAR, VOICE);
    call.pair.rule = lossy(0.05);
    call.speak(1000);
    let late = call.heard.iter().filter(|(_, delay)| *delay > ms(200)).count();
    let (data, encoded) = sent(&call);
    assert_eq!((late, encoded), (0, 0));
    assert!(data > 1030, "{data}: what is lost leaves again");
    assert!(call.frames().len() > 990, "{}", call.frames().len());
}

#[test]
fn redundancy_follows_what_is_lost() {
    let mut call = Call::over(FAR, VOICE);
    call.speak(500);
    let (_, first) = sent(&call);
    call.speak(3000);
    let (_, clean) = sent(&call);
    assert!(first > 0, "what is not known yet may be lost");
    assert!(clean - first < 1500, "{first} {clean}");
    call.speak(500);
    let (_, quiet) = sent(&call);
    assert_eq!(quiet, clean, "nothing was lost for a minute");
    call.pair.rule = lossy(0.05);
    call.speak(1500);
    let (_, lossy) = sent(&call);
    assert!(lossy - quiet > 500, "{quiet} {lossy}");
}

#[test]
fn a_fin_that_is_lost_is_rebuilt() {
    let mut call = Call::over(FAR, VOICE);
    call.pair.rule = lossy(0.05);
    call.speak(200);
    call.pair.rule = Box::new(|seen| {
        let is_fin = seen.from == 0 && seen.header.flags.has(Flags::FIN);
        if is_fin { Verdict::Drop } else { Verdict::Pass }
    });
    call.pair.ends[0].finish(call.pair.now, call.flow);
    call.pair.ends[1].finish(call.pair.now, call.accepted);
    call.pair.run_for(Duration::from_secs(1));
    let ended = Event::Closed(call.accepted, CloseReason::Finished);
    assert!(call.pair.events[1].contains(&ended), "{:?}", call.pair.events[1]);
    assert_eq!(stats(&call)[0].timeouts, 0);
}

/// A quasi reliable flow has no feedback: it encodes as for the losses that are believed before any is seen.
#[test]
fn without_feedback_two_of_a_hundred_are_expected() {
    let set = [
        ("connection", "three-way"),
        ("reliability", "quasi"),
        ("fec", "rlc"),
        ("ordering", "ordered"),
    ];
    let mut pair = Pair::new("unrel", &set);
    let flows = pair.connect();
    pair.rule = lossy(0.02);
    let mut arrived = 0;
    for frame in 0..1000u32 {
        pair.write(0, flows.0, &frame.to_be_bytes());
        pair.run_for(ms(5));
        arrived += pair.read_all(1, flows.1).len();
    }
    pair.ends[0].finish(pair.now, flows.0);
    pair.run_for(ms(500));
    arrived += pair.read_all(1, flows.1).len();
    assert!(arrived >= 995, "{arrived}");
    let encoded = pair.log.iter().filter(|seen| seen.is_encoded()).count();
    // At most one for two frames, and one when the end comes.
    assert!((50..=501).contains(&encoded), "{encoded}");
}

#[test]
fn what_cannot_be_an_encoded_packet_is_refused_and_counted() {
    let lies: [(&[u8], u32); 3] = [(b"\x00", 0), (b"\xFF\xFFa", 0), (b"\x00\x01a", 0xFFF)];
    for (payload, range) in lies {
        let mut call = Call::over(FAR, VOICE);
        let before = stats(&call)[1].rejected_packets;
        call.pair.forge(0, payload, |header| {
            header.flags = Flags::NONE;
            header.acknowledgement = None;
            header.services.error = header.services.error | ErrorControl::ENC;
            header.fec = Some(Fec { kind: 3, range });
        });
        call.pair.run_for(ms(10));
        assert_eq!(stats(&call)[1].rejected_packets, before + 1, "{payload:?}");
        call.speak(20);
        assert_eq!(call.frames().len(), 20, "the talk goes on");
    }
}
/// Gilbert's channel: 5 % are lost, in bursts of 3 packets. Of what is lost, 0.93 can be saved by an encoded packet behind each
/// frame (docs/results/voice.md).
#[test]
fn where_losses_come_in_bursts_frames_leave_again_after_them() {
    let mut call = Call::over(FAR, VOICE);
    let (mut draw, mut bad) = (Stream::named(8, "bursts"), false);
    call.pair.rule = Box::new(move |seen| {
        if seen.from != 0 {
            return Verdict::Pass;
        }
        let lost = bad;
        bad = draw.chance(if bad { 2.0 / 3.0 } else { 0.0175 });
        if lost { Verdict::Drop } else { Verdict::Pass }
    });
    call.speak(10_000);
    // By then it is known what is lost.
    let counts = |frame: u64| frame >= 1000;
    let of = |seen: &Seen| u64::from_be_bytes(seen.payload[..8].try_into().expect("a frame"));
    let is_lost = |seen: &&Seen| seen.is_data() && seen.verdict == Verdict::Drop && counts(of(seen));
    let lost = call.pair.log.iter().filter(is_lost).count();
    let heard = call
        .heard
        .iter()
        .filter(|(frame, delay)| *delay <= ms(200) && counts(*frame));
    let missed = 9000 - heard.count();
    assert!(lost > 400, "{lost}");
    assert!(
        missed as f64 <= (1.0 - 0.9 * 0.93) * lost as f64,
        "{missed} of {lost}"
    );
}

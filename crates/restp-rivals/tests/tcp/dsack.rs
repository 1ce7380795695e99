//! Duplicates that the receiver names (RFC 2883), and what the sender makes of them (RFC 3708, RFC 8985 §6.2).

use crate::network::{Pair, Seen, Verdict, noise};
use restp_base::flow::{Flow, FlowId, FlowStats};
use restp_base::machine::Datagram;
use restp_base::time::Duration;
use restp_rivals::tcp::TcpParameters;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn is_data(seen: &Seen) -> bool {
    seen.from == 0 && seen.is_data()
}

/// The data segments of side 0 with these ordinals, counted from 1, retransmissions included, meet `verdict`.
fn judge(ordinals: &'static [u64], verdict: Verdict) -> Box<dyn FnMut(&Seen) -> Verdict> {
    let mut count = 0;
    Box::new(move |seen| {
        count += u64::from(is_data(seen));
        if is_data(seen) && ordinals.contains(&count) {
            verdict
        } else {
            Verdict::Pass
        }
    })
}

/// Acknowledgements of the receiver whose first block lies below the pointer or in the second block.
fn duplicate_blocks(pair: &Pair) -> Vec<(u32, u32)> {
    let named = |seen: &Seen| {
        let blocks = &seen.header.options.sack;
        let (left, right) = *blocks.first()?;
        let below = seen.header.acknowledgement.wrapping_sub(right) as i32 >= 0;
        let within = blocks.get(1).is_some_and(|(start, end)| {
            left.wrapping_sub(*start) as i32 >= 0 && end.wrapping_sub(right) as i32 >= 0
        });
        (below || within).then_some((left, right))
    };
    pair.log
        .iter()
        .filter(|seen| seen.from == 1)
        .filter_map(named)
        .collect()
}

/// The `n`th data segment, counted from 1: its first byte and the one behind it.
fn bytes_of(pair: &Pair, n: usize) -> (u32, u32) {
    let seen = pair.log.iter().filter(|seen| is_data(seen)).nth(n - 1);
    let seen = seen.expect("so many segments");
    let start = seen.header.sequence;
    (start, start.wrapping_add(seen.payload.len() as u32))
}

/// RFC 2883 §4.1.1: a segment that arrives twice is named once, in the first block.
#[test]
fn a_segment_that_arrives_twice_is_named_once() {
    let mut pair = Pair::current("cubic", &[]);
    let flows = pair.connect();
    pair.rule = judge(&[4], Verdict::Twice);
    let data = noise(10 * 1388);
    assert_eq!(pair.transfer(flows, &data, ms(500)), data);
    assert_eq!(duplicate_blocks(&pair), [bytes_of(&pair, 4)]);
    let stats = stats(&pair, flows.0);
    assert_eq!((stats.retransmitted_packets, stats.lost_packets), (0, 0));
}

/// RFC 2883 §4.2: beyond a hole the block that it lies in follows, then the others.
#[test]
fn a_duplicate_beyond_a_hole_is_named_before_the_block_that_it_lies_in() {
    let mut pair = Pair::current("cubic", &[]);
    let flows = pair.connect();
    let mut count = 0;
    pair.rule = Box::new(move |seen| {
        count += u64::from(is_data(seen));
        match count {
            2 if is_data(seen) => Verdict::Drop,
            4 if is_data(seen) => Verdict::Twice,
            _ => Verdict::Pass,
        }
    });
    let data = noise(10 * 1388);
    assert_eq!(pair.transfer(flows, &data, ms(500)), data);
    let named = bytes_of(&pair, 4);
    assert_eq!(duplicate_blocks(&pair), [named]);
    let with = pair
        .log
        .iter()
        .find(|seen| seen.header.options.sack.first() == Some(&named));
    let blocks = &with.expect("it is named").header.options.sack;
    assert_eq!(blocks[1], (bytes_of(&pair, 3).0, named.1));
}

/// It comes behind a newer block: its own block follows all the same.
#[test]
fn the_block_of_a_duplicate_goes_before_newer_ones() {
    let mut pair = Pair::current("cubic", &[]);
    let flows = pair.connect();
    pair.rule = judge(&[2, 6], Verdict::Drop);
    pair.write(0, flows.0, &noise(10 * 1388));
    pair.run_for(ms(5));
    let fourth = pair.log.iter().filter(|seen| is_data(seen)).nth(3).cloned();
    let fourth = fourth.expect("ten have left");
    let mut again = Datagram::empty();
    again.path = Pair::path(0);
    fourth.header.emit(&fourth.payload, again.path, &mut again.head);
    again.body = fourth.payload;
    pair.send(0, again);
    pair.run_for(ms(15));
    let named = bytes_of(&pair, 4);
    let with = pair
        .log
        .iter()
        .find(|seen| seen.header.options.sack.first() == Some(&named));
    let blocks = &with.expect("it is named").header.options.sack;
    let block = |first, last| (bytes_of(&pair, first).0, bytes_of(&pair, last).1);
    assert_eq!(blocks[1..], [block(3, 5), block(7, 10)]);
}

#[test]
fn nobody_names_duplicates_without_sack_or_when_told_not_to() {
    let classic = TcpParameters::classic_from_pairs("sack", &[]).unwrap();
    let off = TcpParameters::from_pairs("cubic", &[("dsack", "off")]).unwrap();
    for server in [classic, off] {
        let mut pair = Pair::current("cubic", &[]);
        pair.replace_server(server);
        let flows = pair.connect();
        pair.rule = judge(&[4], Verdict::Twice);
        let data = noise(10 * 1388);
        assert_eq!(pair.transfer(flows, &data, ms(500)), data);
        assert_eq!(duplicate_blocks(&pair), []);
    }
}

fn stats(pair: &Pair, flow: FlowId) -> FlowStats {
    pair.ends[0].stats(flow).expect("alive")
}
fn window(pair: &Pair, flow: FlowId) -> u64 {
    stats(pair, flow).congestion_window_bytes
}

/// A connection that has grown its window, and that window.
fn grown(set: &[(&str, &str)]) -> (Pair, (FlowId, FlowId), u64) {
    let mut pair = Pair::current("cubic", set);
    let flows = pair.connect();
    let data = noise(100_000);
    assert_eq!(pair.transfer(flows, &data, ms(1000)), data);
    let window = window(&pair, flows.0);
    (pair, flows, window)
}

/// The window, and how many segments left again, after 60 000 more bytes under `rule`.
fn after(set: &[(&str, &str)], rule: Box<dyn FnMut(&Seen) -> Verdict>) -> (u64, u64, u64) {
    let (mut pair, flows, before) = grown(set);
    pair.rule = rule;
    let data = noise(60_000);
    assert_eq!(pair.transfer(flows, &data, ms(3000)), data);
    pair.run_for(ms(200));
    let stats = stats(&pair, flows.0);
    (before, stats.congestion_window_bytes, stats.retransmitted_packets)
}

/// One segment comes 30 ms late, more than a round trip: it leaves again, that answer comes first, and by time alone nobody
/// can tell. The receiver names the duplicate, and the window is what it was.
#[test]
fn a_reduction_for_a_segment_that_was_only_late_is_taken_back() {
    let late = || judge(&[5], Verdict::Late(ms(30)));
    let (before, window, again) = after(&[], late());
    assert_eq!(again, 1);
    assert!(window >= before, "{window} of {before}");
    let (before, window, again) = after(&[("dsack", "off")], late());
    assert_eq!(again, 1);
    assert!(window < before, "{window} of {before}: nobody knows");
}

/// The duplicate is named when everything is acknowledged and nothing is outstanding.
#[test]
fn the_last_segments_of_a_burst_are_taken_back_too() {
    let late = || judge(&[40], Verdict::Late(ms(60)));
    let (before, window, again) = after(&[], late());
    assert_eq!(again, 1);
    assert!(window >= before, "{window} of {before}");
}

#[test]
fn a_reduction_for_a_lost_segment_stays() {
    let (before, window, again) = after(&[], judge(&[5], Verdict::Drop));
    assert_eq!(again, 1);
    assert!(window < before, "{window} of {before}");
    // One of two was lost: the reduction was right.
    let mut count = 0;
    let one_of_two = move |seen: &Seen| {
        count += u64::from(is_data(seen));
        match count {
            5 if is_data(seen) => Verdict::Drop,
            7 if is_data(seen) => Verdict::Late(ms(30)),
            _ => Verdict::Pass,
        }
    };
    let (before, window, again) = after(&[], Box::new(one_of_two));
    assert_eq!(again, 2);
    assert!(window < before, "{window} of {before}");
}

/// A network of 20 ms that holds a segment up for 30 ms now and then, and loses none: more than any time that a segment is
/// given, so some leave again. The window is the undisturbed one, where it would be a fraction of that.
#[test]
fn a_network_that_reorders_by_more_than_a_round_trip_costs_no_window() {
    let run = |set: &[(&str, &str)]| {
        let (mut pair, flows, _) = grown(set);
        let mut count = 0;
        pair.rule = Box::new(move |seen| {
            count += u64::from(is_data(seen));
            let late = is_data(seen) && count % 100 == 10;
            if late {
                Verdict::Late(ms(30))
            } else {
                Verdict::Pass
            }
        });
        let began = pair.now;
        let data = noise(2_000_000);
        assert_eq!(pair.transfer(flows, &data, Duration::from_secs(30)), data);
        let stats = stats(&pair, flows.0);
        assert!(stats.retransmitted_packets > 0);
        (stats.congestion_window_bytes, pair.now.since(began))
    };
    let (with, without) = (run(&[]), run(&[("dsack", "off")]));
    assert!(
        with.0 > 3 * without.0 && with.1 < without.1,
        "{with:?}, {without:?}"
    );
}

/// A receiver that names what never left again, or names the same segment again and again, changes nothing.
#[test]
fn duplicates_that_cannot_be_are_ignored() {
    let (mut pair, flows, _) = grown(&[]);
    pair.rule = judge(&[5], Verdict::Drop);
    let data = noise(60_000);
    assert_eq!(pair.transfer(flows, &data, ms(3000)), data);
    let before = window(&pair, flows.0);
    pair.rule = Box::new(|_| Verdict::Pass);
    let bare = |seen: &&Seen| seen.from == 1 && seen.is_bare_ack();
    let last = pair
        .log
        .iter()
        .rfind(bare)
        .expect("an acknowledgement")
        .header
        .clone();
    for back in 0..2000_u32 {
        let mut header = last.clone();
        let right = last.acknowledgement.wrapping_sub(back * 50);
        header.options.sack = [(right.wrapping_sub(40), right)].into_iter().collect();
        pair.forge(1, &header, b"");
    }
    pair.run_for(ms(100));
    let stats = stats(&pair, flows.0);
    assert_eq!(stats.congestion_window_bytes, before);
    assert_eq!(pair.transfer(flows, &data, ms(3000)), data);
}

/// A receiver may lie about what was lost. It gets back the window that it had, once, and nothing beyond.
#[test]
fn a_lie_about_a_lost_segment_counts_once() {
    let (mut pair, flows, before) = grown(&[]);
    pair.log.clear();
    pair.rule = judge(&[5], Verdict::Drop);
    let data = noise(60_000);
    assert_eq!(pair.transfer(flows, &data, ms(3000)), data);
    let lost = bytes_of(&pair, 5);
    let reduced = window(&pair, flows.0);
    let bare = |seen: &&Seen| seen.from == 1 && seen.is_bare_ack();
    let last = pair.log.iter().rfind(bare).expect("an acknowledgement");
    let mut header = last.header.clone();
    header.options.sack = [lost].into_iter().collect();
    let mut windows = Vec::new();
    for _ in 0..1000 {
        pair.forge(1, &header, b"");
        pair.run_for(ms(1));
        windows.push(window(&pair, flows.0));
    }
    let last = windows[windows.len() - 1];
    assert!(reduced < before && last > reduced, "{before}, {reduced}, {last}");
    windows.dedup();
    assert!(windows.len() <= 2, "{windows:?}");
    assert!(last < 2 * before, "{before}, {last}");
}

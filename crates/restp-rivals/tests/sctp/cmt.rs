//! Concurrent multipath transfer (CMT §2, §3): all paths at once, without taking what is late for lost.

use super::network::*;
use restp_base::flow::Flow;
use restp_base::time::Duration;
use restp_rivals::sctp::SctpParameters;

fn rate(parameters: SctpParameters, lines: &[Line]) -> usize {
    let mut net = Net::new(parameters, lines);
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(12));
    net.bulk(flow, 1400, Duration::from_secs(20))
}

#[test]
fn two_paths_carry_the_sum_of_what_each_carries() {
    for unequal in [10, 60] {
        let lines = [line(5, 10), line(5, unequal)];
        let [first, second] = [0, 1].map(|path: usize| rate(sctp(&[]), &lines[path..=path]));
        for policy in ["same", "cwnd"] {
            let both = rate(cmt(policy, &[]), &lines);
            assert!(
                both * 100 > 97 * (first + second),
                "{policy} {unequal}: {both} {first} {second}"
            );
        }
    }
}

/// CMT §2.3: paths of different delay reorder everything, and nothing is sent again.
#[test]
fn reordering_between_paths_costs_no_retransmission() {
    let mut net = Net::new(cmt("cwnd", &[]), &[deep(5, 5), deep(5, 80)]);
    let messages: Vec<_> = (0..3000).map(|_| noise(1400).into()).collect();
    let flow = net.transfer(&messages, Duration::from_secs(60));
    assert_eq!(net.read, messages);
    let stats = net.stats(flow);
    assert_eq!((stats.retransmitted_packets, stats.timeouts), (0, 0));
    let shares = stats.paths.iter().map(|path| path.sent_packets);
    assert!(
        shares.clone().all(|packets| packets > 100),
        "{:?}",
        shares.collect::<Vec<_>>()
    );
}

#[test]
fn every_policy_repairs_losses_on_both_paths() {
    for policy in SctpParameters::policies() {
        for seed in 0..5 {
            let set = [("loss-rates", "1 %, 8 %"), ("receive-buffer", "64 KiB")];
            let mut net = Net::new(cmt(policy, &set), &[line(10, 10), line(10, 25)]);
            let mut chance = chance(seed);
            net.rule = Box::new(move |seen| {
                let rate = [0.01, 0.08][seen.path];
                (!chance.chance(rate)).then_some(Duration::ZERO)
            });
            let sent = messages(1000, 1400);
            net.transfer(&sent, Duration::from_secs(600));
            assert_eq!(net.read, sent, "{policy} {seed}");
        }
    }
}

/// Where the chunks leave again that the second path lost, for a while.
fn again_by(policy: &str, set: &[(&str, &str)]) -> [usize; 2] {
    let mut net = Net::new(cmt(policy, set), &[deep(10, 10), deep(10, 10)]);
    let mut chance = chance(3);
    net.rule = Box::new(move |seen| {
        let lost = seen.path == 1 && seen.is_data() && chance.chance(0.03);
        (!lost).then_some(Duration::ZERO)
    });
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(20));
    let mut seen_before = std::collections::BTreeSet::new();
    let mut again = [0, 0];
    for seen in &net.log {
        if let Some(tsn) = seen.tsn().filter(|_| seen.from == OPENER)
            && !seen_before.insert(tsn)
        {
            again[seen.path] += 1;
        }
    }
    again
}

#[test]
fn retransmissions_follow_the_policy() {
    let [first, second] = again_by("same", &[]);
    assert!(first == 0 && second > 20, "{first} {second}");
    for (policy, set) in [
        ("cwnd", &[][..]),
        ("ssthresh", &[]),
        ("lossrate", &[("loss-rates", "0 %, 3 %")]),
    ] {
        let [first, second] = again_by(policy, set);
        assert!(first > 4 * second && first > 20, "{policy}: {first} {second}");
    }
}

#[test]
fn acknowledgements_return_by_the_path_that_is_chosen() {
    let sacks = |set: &[(&str, &str)]| {
        // Of different rates, or the packets of one path would come right behind those of the other, and every second one be its own.
        let mut net = Net::new(cmt("cwnd", set), &[line(5, 10), line(6, 10)]);
        let flow = net.open();
        net.bulk(flow, 1400, Duration::from_secs(5));
        [0, 1].map(|path| net.count(|seen| seen.sack().is_some() && seen.path == path))
    };
    let [first, second] = sacks(&[]);
    assert!(first > 500 && second > 500, "{first} {second}");
    let [first, second] = sacks(&[("ack-return", "2")]);
    assert!(
        first < 10 && second > 1000,
        "{first} {second}: until the path is confirmed"
    );
}

/// The acceptor hears of the third path before the second, whose first packets are lost.
#[test]
fn the_path_of_acknowledgements_is_counted_as_the_opener_wrote_it() {
    let lines = [line(5, 10), line(5, 10), line(5, 10)];
    let mut net = Net::new(cmt("cwnd", &[("ack-return", "2")]), &lines);
    let mut first = 0;
    net.rule = Box::new(move |seen| {
        first += usize::from(seen.path == 1);
        (seen.path != 1 || first > 2).then_some(Duration::ZERO)
    });
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(10));
    let sacks = [0, 1, 2].map(|path| net.count(|seen| seen.sack().is_some() && seen.path == path));
    assert!(sacks[1] > 10 * (sacks[0] + sacks[2]) / 2, "{sacks:?}");
}

/// CMT §3, 3hCMT-dP1P2-aP3 with two paths less: the second path carries acknowledgements alone, and new data where the first is dead.
#[test]
fn data_leaves_by_the_paths_for_data_alone_while_one_of_them_works() {
    let set = [("ack-return", "2"), ("data-paths", "1"), ("path-attempts", "1")];
    let mut net = Net::new(cmt("cwnd", &set), &[line(5, 10), line(5, 10)]);
    let mut chance = chance(3);
    net.rule = Box::new(move |seen| (!(seen.is_data() && chance.chance(0.01))).then_some(Duration::ZERO));
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(5));
    let data = |net: &Net| [0, 1].map(|path| net.count(|seen| seen.is_data() && seen.path == path));
    let [first, second] = data(&net);
    assert!(first > 1000 && second == 0, "{first} {second}");
    let sacks = net.count(|seen| seen.sack().is_some() && seen.path == 1);
    assert!(sacks > 500, "{sacks}");
    net.rule = Box::new(|seen| (seen.path == 1).then_some(Duration::ZERO));
    net.bulk(flow, 1400, Duration::from_secs(20));
    assert!(data(&net)[1] > 1000, "{:?}", data(&net));
}

/// CMT §2.5: with DAC a SACK answers two packets, whatever is missing between paths; without, each hole hurries one.
#[test]
fn delayed_acknowledgements_halve_the_sacks() {
    let per_packet = |dac: &str| {
        let mut net = Net::new(cmt("cwnd", &[("dac", dac)]), &[deep(5, 10), deep(5, 30)]);
        let flow = net.open();
        net.bulk(flow, 1400, Duration::from_secs(5));
        let accepted = net.accepted().expect("accepted");
        let received = net.hosts[SERVER].stats(accepted).expect("open").received_packets;
        let sacks = net.count(|seen| seen.sack().is_some()) as u64;
        (sacks * 100 / received, net.stats(flow).timeouts)
    };
    assert_eq!(per_packet("on"), (49, 0), "and what belongs to the set-up");
    let (without, timeouts) = per_packet("off");
    assert!(without > 85 && timeouts == 0, "{without}");
}

/// CMT §2.8: one buffer for all paths, and the slower path fills it.
#[test]
fn a_small_receive_buffer_blocks_all_paths() {
    let with = |buffer: &str| {
        let lines = [line(5, 10), line(5, 80)];
        rate(cmt("cwnd", &[("receive-buffer", buffer)]), &lines)
    };
    let [small, medium, large] = ["16 KiB", "64 KiB", "unlimited"].map(with);
    assert!(
        small * 2 < medium && medium * 10 < large * 9,
        "{small} {medium} {large}"
    );
}

/// One path dies: what it carried leaves by the other.
#[test]
fn data_goes_on_by_the_path_that_lives() {
    let mut net = Net::new(cmt("cwnd", &[]), &[line(10, 10), line(10, 10)]);
    net.rule = Box::new(|seen| {
        let down = seen.path == 1 && seen.at.since(restp_base::time::Time::ZERO) > Duration::from_secs(3);
        (!down).then_some(Duration::ZERO)
    });
    let sent: Vec<_> = (0..20_000).map(|_| noise(1400).into()).collect();
    net.transfer(&sent, Duration::from_secs(120));
    assert_eq!(net.read.len(), sent.len());
    assert!(net.read == sent);
}

//! Two paths at once, and one of them lost (RFC 8684 §3.3).

use crate::network::{Line, Net, line, noise};
use restp_base::flow::Flow;
use restp_base::time::{Duration, Time};
use restp_rivals::mptcp::options::Multipath;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Payload per second that 50 Mbit/s carry: 1400 bytes of 1468.
const ONE: f64 = 50e6 / 8.0 * 1400.0 / 1468.0;

#[test]
fn two_subflows_of_50_mbit_carry_nine_tenths_of_both() {
    for set in [
        &[][..],
        &[("scheduling", "round-robin")],
        &[("congestion", "bbr1")],
    ] {
        let mut net = Net::pair(set, &[line(50, 0), line(50, 1)]);
        let flow = net.open(0);
        net.bulk(&[(0, flow)], MS(2000));
        let read = net.bulk(&[(0, flow)], MS(5000))[0];
        let rate = read as f64 / 5.0;
        assert!(
            rate > 0.9 * 2.0 * ONE,
            "{set:?}: {:.1} of 100 Mbit/s",
            rate * 8e-6
        );
    }
}

#[test]
fn a_path_that_is_cut_leaves_its_bytes_to_the_other_and_each_arrives_once() {
    for lines in [
        [line(20, 0), line(20, 1)],
        [
            line(20, 0),
            Line {
                delay: MS(40),
                ..line(5, 1)
            },
        ],
    ] {
        for cut in [0, 1] {
            let mut net = Net::pair(&[], &lines);
            let dies = Time::ZERO + MS(700);
            net.rule = Box::new(move |seen| seen.path != cut || seen.at < dies);
            let flow = net.open(0);
            let data = noise(4_000_000);
            let got = net.transfer(flow, &data, MS(20_000));
            assert!(got == data, "cut {cut}: {} of {}", got.len(), data.len());
            let stats = net.hosts[0].stats(flow).unwrap();
            assert!(stats.paths[cut].suspicions >= 1 && stats.timeouts >= 1);
            assert_eq!(stats.paths[1 - cut].suspicions, 0);
        }
    }
}

#[test]
fn what_a_silent_path_held_is_sent_on_the_other_when_its_timer_runs_out() {
    let mut net = Net::pair(&[], &[line(20, 0), line(20, 1)]);
    let dies = Time::ZERO + MS(700);
    net.rule = Box::new(move |seen| seen.path != 1 || seen.at < dies);
    let flow = net.open(0);
    let data = noise(8_000_000);
    let mut longest = (Duration::ZERO, Time::ZERO);
    let mut last = Time::ZERO;
    let mut sent = 0;
    let mut read = 0;
    while read < data.len() && net.now < Time::ZERO + MS(10_000) {
        while sent < data.len() {
            let piece = &data[sent..data.len().min(sent + 5000)];
            if net.hosts[0]
                .write(net.now, flow, bytes::Bytes::copy_from_slice(piece))
                .is_err()
            {
                break;
            }
            sent += piece.len();
        }
        net.run_for(MS(1));
        let accepted = net.accepted().first().copied();
        let got = accepted.map_or(0, |accepted| net.read_all(1, accepted).len());
        if got > 0 {
            longest = longest.max((net.now.since(last), net.now));
            (last, read) = (net.now, read + got);
        }
    }
    assert_eq!(read, data.len());
    // The timer's floor is 200 ms, the round trip 20 to 40.
    assert!(longest.0 < MS(350), "{longest:?}");
    assert!(longest.1 > dies && longest.1 < dies + MS(400), "{longest:?}");
}

#[test]
fn a_backup_is_used_only_when_the_other_path_fails() {
    let mut net = Net::pair(&[], &[line(20, 0), line(20, 1)]);
    net.owner = vec![0, 9];
    let flow = net.open(0);
    net.owner = vec![0, 0];
    net.hosts[0].add_path(net.now, flow, Net::path(1), true).unwrap();
    let dies = Time::ZERO + MS(800);
    net.rule = Box::new(move |seen| seen.path != 0 || seen.at < dies);
    let data = noise(3_000_000);
    assert!(net.transfer(flow, &data, MS(10_000)) == data);
    let early = net.count(|seen| seen.path == 1 && seen.is_data() && seen.at < dies);
    assert_eq!(early, 0);
    let joins = net.log.iter().filter_map(|seen| seen.option());
    let backups = joins.filter(|option| matches!(option, Multipath::Join { backup: true, .. }));
    assert_eq!(backups.count(), 1);
}

#[test]
fn a_path_that_is_taken_away_leaves_its_bytes_to_the_other() {
    let mut net = Net::pair(&[], &[line(20, 0), line(20, 1)]);
    let flow = net.open(0);
    let data = noise(3_000_000);
    let mut got = net.transfer(flow, &data[..1_000_000], MS(5000));
    net.write(0, flow, &data[1_000_000..1_200_000]);
    net.run_for(MS(20));
    net.hosts[0].remove_path(net.now, flow, Net::path(0)).unwrap();
    let gone = net.now;
    got.extend(net.transfer(flow, &data[1_200_000..], MS(5000)));
    // The first part of the second call was still to be read.
    net.run_for(MS(500));
    got.extend(net.read_all(1, net.accepted()[0]));
    assert!(got == data, "{} of {}", got.len(), data.len());
    assert_eq!(
        net.count(|seen| seen.path == 0 && seen.is_data() && seen.at > gone),
        0
    );
    let error = net.hosts[0]
        .remove_path(net.now, flow, Net::path(1))
        .expect_err("the last one");
    assert!(error.to_string().contains("no other one works"), "{error}");
}

#[test]
fn random_losses_on_both_paths_harm_no_byte() {
    for seed in 0..5 {
        let mut net = Net::pair(&[], &[line(20, 0), line(5, 1)]);
        let mut chance = restp_base::random::Stream::named(seed, "losses");
        net.rule = Box::new(move |_| !chance.chance(0.03));
        let flow = net.open(0);
        let data = noise(1_000_000);
        let got = net.transfer(flow, &data, MS(60_000));
        assert!(got == data, "seed {seed}: {} of {}", got.len(), data.len());
    }
}

/// A mapping and timestamps leave a segment with data no room for blocks: they leave with a bare acknowledgement.
#[test]
fn holes_are_told_while_both_ends_send() {
    let mut net = Net::pair(&[], &[line(20, 0)]);
    let (flow, piece) = (net.open(0), noise(10_000));
    net.write(0, flow, &piece);
    net.run_for(MS(200));
    let (server, accepted) = (net.server(), net.accepted()[0]);
    let mut until_lost = 300;
    net.rule = Box::new(move |seen| {
        until_lost -= i32::from(seen.is_data_of_opener());
        !seen.is_data_of_opener() || until_lost != 0
    });
    for _ in 0..200 {
        for (host, flow) in [(0, flow), (server, accepted)] {
            let piece = bytes::Bytes::from(piece.clone());
            while net.hosts[host].write(net.now, flow, piece.clone()).is_ok() {}
        }
        net.run_for(MS(5));
        net.read_all(0, flow);
        net.read_all(server, accepted);
    }
    let sent_data = net.count(|seen| seen.from == server && seen.is_data());
    let told = net.count(|seen| seen.from == server && !seen.header.options.sack.is_empty());
    let stats = net.hosts[0].stats(flow).expect("it is open");
    assert!(sent_data > 500 && told > 3, "{told} beside {sent_data}");
    assert_eq!(stats.timeouts, 0);
}

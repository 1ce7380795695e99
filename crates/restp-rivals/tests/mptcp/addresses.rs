//! Addresses that come and go (RFC 8684 §3.4).

use crate::network::{Line, Net, PORT, Seen, WIDE, is_join, line, noise};
use restp_base::flow::{Flow, FlowId};
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_rivals::mptcp::options::{AddAddress, Addresses, Multipath};
use restp_rivals::tcp::wire::Flags;
use restp_services::connection_management::{JoinHash, Keys};

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

fn added(seen: &Seen) -> Option<AddAddress> {
    match seen.option() {
        Some(Multipath::AddAddress(added)) => Some(added),
        _ => None,
    }
}

fn is_announcement(seen: &Seen) -> bool {
    added(seen).is_some_and(|added| added.proof.is_some())
}
fn is_echo(seen: &Seen) -> bool {
    added(seen).is_some_and(|added| added.proof.is_none())
}
/// A connection on path 0 whose opener waits for announcements, over `lines` paths.
fn waiting(lines: usize) -> (Net, FlowId, FlowId) {
    let mut net = Net::pair(&[("addresses", "announced")], &vec![line(20, 0); lines]);
    let flow = net.open(0);
    net.write(0, flow, &noise(5000));
    net.run_for(SECS(1));
    let accepted = net.accepted()[0];
    assert_eq!(net.read_all(1, accepted), noise(5000));
    assert_eq!(net.count(is_join), 0, "nothing is announced yet");
    (net, flow, accepted)
}

/// The server has an address on `path` from now on.
fn announce(net: &mut Net, accepted: FlowId, path: usize) {
    let now = net.now;
    let added = net.hosts[1].add_path(now, accepted, Net::path(path).reversed(), false);
    added.expect("one more address");
}

#[test]
fn an_address_that_the_server_announces_later_is_used() {
    let (mut net, flow, accepted) = waiting(2);
    announce(&mut net, accepted, 1);
    net.run_for(MS(200));
    let said = net.log.iter().find_map(added).expect("an announcement");
    assert_eq!((said.id, said.ip, said.port), (1, Net::path(1).remote.ip(), None));
    assert_eq!((net.count(is_announcement), net.count(is_echo)), (1, 1));
    let join = net.log.iter().find(|seen| is_join(seen)).expect("a join");
    assert_eq!((join.from, join.path), (0, 1));
    let data = noise(2_000_000);
    assert!(net.transfer(flow, &data, SECS(10)) == data);
    assert!(net.count(|seen| seen.path == 1 && seen.is_data_of_opener()) > 100);
    net.run_for(SECS(300));
    assert_eq!(net.count(is_announcement), 1, "an echoed one is not said again");
}

#[test]
fn an_announcement_is_echoed_while_data_flow_the_other_way() {
    let (mut net, flow, accepted) = waiting(2);
    net.bulk(&[(0, flow)], SECS(1));
    announce(&mut net, accepted, 1);
    net.bulk(&[(0, flow)], SECS(5));
    assert_eq!((net.count(is_announcement), net.count(is_echo)), (1, 1));
    assert!(net.count(|seen| seen.path == 1 && seen.is_data_of_opener()) > 1000);
}

#[test]
fn a_lost_announcement_leaves_again_with_doubled_waits_until_its_echo() {
    for loses_echo in [false, true] {
        let (mut net, _, accepted) = waiting(2);
        let mut left = 2;
        net.rule = Box::new(move |seen| {
            let lost = if loses_echo {
                is_echo(seen)
            } else {
                is_announcement(seen)
            } && left > 0;
            left -= i32::from(lost);
            !lost
        });
        announce(&mut net, accepted, 1);
        net.run_for(SECS(60));
        let times: Vec<Time> = net
            .log
            .iter()
            .filter(|s| is_announcement(s))
            .map(|s| s.at)
            .collect();
        assert_eq!(times.len(), 3, "echo {loses_echo}");
        let (first, second) = (times[1].since(times[0]), times[2].since(times[1]));
        // The timer knows the first round trip of the new subflow by then.
        let doubled = (first + first).as_millis() == second.as_millis();
        assert!(doubled && first >= MS(200), "{first:?}, {second:?}");
        assert_eq!(net.count(is_join), 1, "echo {loses_echo}");
    }
}

#[test]
fn an_announcement_that_is_never_echoed_is_given_up() {
    let (mut net, _, accepted) = waiting(2);
    net.rule = Box::new(|seen| !is_announcement(seen));
    announce(&mut net, accepted, 1);
    net.run_for(SECS(600));
    assert_eq!(net.count(is_announcement), 4);
}

/// A wrong HMAC: it is counted, not echoed, and nobody dials.
#[test]
fn a_forged_announcement_does_nothing() {
    let (mut net, flow, accepted) = waiting(2);
    net.rule = Box::new(|seen| {
        if let Some(Multipath::AddAddress(added)) = &mut seen.header.options.multipath
            && let Some(proof) = &mut added.proof
        {
            proof[7] ^= 1;
        }
        true
    });
    let before = net.hosts[0].stats(flow).unwrap().rejected_packets;
    announce(&mut net, accepted, 1);
    net.run_for(SECS(60));
    assert_eq!(net.count(is_announcement), 4);
    assert_eq!((net.count(is_echo), net.count(is_join)), (0, 0));
    assert_eq!(net.hosts[0].stats(flow).unwrap().rejected_packets - before, 4);
    let data = noise(100_000);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
}

#[test]
fn a_flood_of_announcements_and_removals_takes_no_memory_and_harms_no_byte() {
    let (mut net, flow, _) = waiting(2);
    let bare = |seen: &&Seen| seen.from == 1 && !seen.is_data() && !seen.has(Flags::SYN);
    let last = net.log.iter().rfind(bare).expect("an acknowledgement").clone();
    let before = net.hosts[0].stats(flow).unwrap().memory_bytes;
    for number in 0..20_000_u32 {
        let [.., a, b] = number.to_be_bytes();
        let option = if number % 2 == 0 {
            Multipath::AddAddress(AddAddress {
                id: b,
                ip: [10, 9, a, b].into(),
                port: None,
                proof: Some([b; 8]),
            })
        } else {
            Multipath::RemoveAddresses(Addresses::one(b.max(1)))
        };
        let mut header = last.header.clone();
        header.options.multipath = Some(option);
        let path = Net::path(0);
        let mut datagram = Datagram::empty();
        header.emit(&[], path.reversed(), &mut datagram.head);
        datagram.path = path;
        net.hosts[0].handle(net.now, Input::Datagram(&mut datagram));
        let mut out = Datagram::empty();
        while net.hosts[0].poll_transmit(net.now, &mut out) {}
    }
    let after = net.hosts[0].stats(flow).unwrap();
    assert!(after.rejected_packets >= 10_000);
    assert!(
        after.memory_bytes < before + 4096,
        "{before}, {}",
        after.memory_bytes
    );
    assert_eq!(net.count(is_join), 0);
    let data = noise(100_000);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
}

/// RFC 8684 §3.4.1: it looks like a duplicate acknowledgement, and is none.
#[test]
fn announcements_are_no_duplicates() {
    let set = [("addresses", "announced"), ("recovery", "duplicate-ack")];
    let mut net = Net::pair(&set, &[WIDE, WIDE, WIDE, WIDE, WIDE]);
    let flow = net.open(0);
    net.write(0, flow, &noise(100));
    net.run_for(SECS(1));
    let accepted = net.accepted()[0];
    for path in 1..5 {
        announce(&mut net, accepted, path);
    }
    // On their way while the announcements arrive.
    net.write(0, flow, &noise(1400));
    net.run_for(MS(15));
    assert_eq!(net.count(is_announcement), 4);
    net.run_for(SECS(1));
    assert_eq!(net.hosts[0].stats(flow).unwrap().retransmitted_packets, 0);
}

#[test]
fn an_address_that_the_server_takes_back_is_left_alone_until_it_is_announced_again() {
    for delay in [MS(10), MS(2)] {
        taken_back_and_announced_again(delay);
    }
}

/// `delay`: of the path that is taken back. On a short one its reset comes before the notice.
fn taken_back_and_announced_again(delay: Duration) {
    let short = Line { delay, ..line(20, 1) };
    let mut net = Net::pair(&[], &[line(20, 0), short]);
    let flow = net.open(0);
    let data = noise(1_000_000);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
    let accepted = net.accepted()[0];
    let (now, path) = (net.now, Net::path(1).reversed());
    net.hosts[1]
        .remove_path(now, accepted, path)
        .expect("the other works");
    net.run_for(SECS(200));
    let removals = net.log.iter().filter_map(|seen| match seen.option() {
        Some(Multipath::RemoveAddresses(removed)) => Some(removed.ids().to_vec()),
        _ => None,
    });
    assert_eq!(removals.collect::<Vec<_>>(), [[1]]);
    assert_eq!(net.count(is_join), 1, "the first one");
    announce(&mut net, accepted, 1);
    net.run_for(MS(500));
    assert_eq!(net.count(is_join), 2);
    let from = net.now;
    assert!(net.transfer(flow, &data, SECS(5)) == data);
    assert!(net.count(|seen| seen.at > from && seen.path == 1 && seen.is_data_of_opener()) > 50);
}

/// A notice of the lower layer: the address goes, and comes back after 60 s.
#[test]
fn an_address_that_the_client_loses_and_gets_back_is_used_again_at_once() {
    let mut net = Net::pair(&[], &[line(20, 0), line(20, 1)]);
    let flow = net.open(0);
    let data = noise(1_000_000);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
    for up in [false, true] {
        let local = Net::path(1).local;
        let now = net.now;
        net.hosts[0].handle(now, Input::PathNotice { local, up });
        net.run_for(if up { MS(100) } else { SECS(60) });
        assert_eq!(net.count(is_join), if up { 2 } else { 1 });
    }
    let gone = |seen: &Seen| seen.option() == Some(Multipath::RemoveAddresses(Addresses::one(1)));
    assert_eq!(net.count(gone), 1);
    let from = net.now;
    assert!(net.transfer(flow, &data, SECS(5)) == data);
    assert!(net.count(|seen| seen.at > from && seen.path == 1 && seen.is_data_of_opener()) > 50);
    let stats = net.hosts[0].stats(flow).unwrap();
    assert_eq!(stats.paths.len(), 2, "one pair is one path");
    // Resets without ACK are the host's, for segments of a subflow that is no more.
    let sent = net.count(|seen| seen.from == 0 && seen.path == 1 && seen.header.flags != Flags::RST) as u64;
    assert_eq!(stats.paths[1].sent_packets, sent, "both subflows count");
}

/// Its own end does not wait for the peer to hear of it.
#[test]
fn an_address_that_the_client_loses_carries_nothing_more() {
    let mut net = Net::pair(&[], &[line(20, 0), line(20, 1)]);
    let flow = net.open(0);
    net.bulk(&[(0, flow)], SECS(1));
    net.rule = Box::new(|seen| !matches!(seen.option(), Some(Multipath::RemoveAddresses(_))));
    let (from, local) = (net.now, Net::path(1).local);
    net.hosts[0].handle(net.now, Input::PathNotice { local, up: false });
    net.bulk(&[(0, flow)], SECS(1));
    let sent = |seen: &Seen| seen.at >= from && seen.from == 0 && seen.path == 1;
    assert!(
        net.count(|seen| sent(seen) && seen.has(Flags::RST)) >= 1,
        "and once more for what was on its way"
    );
    assert_eq!(net.count(|seen| sent(seen) && seen.is_data()), 0);
    assert!(net.count(|seen| seen.at > from && seen.path == 0 && seen.is_data_of_opener()) > 500);
}

/// RFC 8684 §3.1: both ends have to know both keys before anything is said beside them.
#[test]
fn nothing_is_said_of_addresses_before_both_ends_know_the_keys() {
    let mut net = Net::pair(&[], &[WIDE]);
    let flow = net.open(0);
    net.run_for(MS(25));
    assert_eq!(net.count(|seen| seen.from == 0), 2, "SYN, and the keys");
    let local = Net::path(0).local;
    net.hosts[0].handle(net.now, Input::PathNotice { local, up: false });
    net.write(0, flow, &noise(3000));
    net.run_for(SECS(1));
    let answered = |seen: &&Seen| seen.from == 1 && !seen.has(Flags::SYN);
    let answered = net.log.iter().find(answered).expect("an acknowledgement").at;
    let gone = |seen: &&Seen| matches!(seen.option(), Some(Multipath::RemoveAddresses(_)));
    let said: Vec<Time> = net.log.iter().filter(gone).map(|seen| seen.at).collect();
    assert_eq!(said, [answered + MS(10)]);
}

/// As Linux since 6.18: the announcement, or its echo, may have gone by any of the subflows.
#[test]
fn an_echo_is_waited_for_as_long_as_the_slowest_subflow_needs() {
    let slow = Line {
        delay: MS(300),
        ..line(20, 1)
    };
    let mut net = Net::pair(&[], &[line(20, 0), slow]);
    let flow = net.open(0);
    net.bulk(&[(0, flow)], SECS(5));
    let accepted = net.accepted()[0];
    net.rule = Box::new(|seen| !is_announcement(seen));
    announce(&mut net, accepted, 0);
    net.run_for(SECS(10));
    let said: Vec<_> = net.log.iter().filter(|seen| is_announcement(seen)).collect();
    assert_eq!((said[0].path, said[1].path), (0, 0));
    let wait = said[1].at.since(said[0].at);
    assert!(wait >= MS(600), "{wait:?}");
}

/// Data that leave in the same turn would not bring it.
#[test]
fn what_is_said_of_addresses_does_not_wait_for_data_to_end() {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    let flow = net.open(0);
    net.write(0, flow, &noise(20_000));
    net.run_for(SECS(1));
    let local = Net::path(1).local;
    net.write(0, flow, &noise(5000));
    net.hosts[0].handle(net.now, Input::PathNotice { local, up: false });
    net.run_for(SECS(1));
    let gone = |seen: &Seen| matches!(seen.option(), Some(Multipath::RemoveAddresses(_)));
    assert_eq!(net.count(gone), 1);
}

#[test]
fn a_pair_that_is_used_already_cannot_be_added() {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    let flow = net.open(0);
    for path in 0..2 {
        let error = net.hosts[0]
            .add_path(net.now, flow, Net::path(path), false)
            .expect_err("twice");
        assert!(error.to_string().contains("already"), "{error}");
    }
}

#[test]
fn a_peer_hears_of_eight_addresses_at_most() {
    let (mut net, _, accepted) = waiting(1);
    let mut refused = 0;
    for host in 1..=9 {
        let path = PathAddress {
            local: ([10, 3, 0, host], 0).into(),
            remote: Net::path(0).local,
        };
        refused += usize::from(net.hosts[1].add_path(net.now, accepted, path, false).is_err());
    }
    assert_eq!(refused, 1);
}

/// A server with one address for two of the client: without one of the paths it still has that address.
#[test]
fn a_path_that_the_server_drops_takes_no_address_from_another() {
    let mut net = Net::pair(&[], &[line(20, 0)]);
    let flow = net.open(0);
    net.lines.push(line(20, 1));
    net.owner.push(0);
    let second = net.hosts[0].add_path(net.now, flow, to_first_address(), false);
    second.expect("one more path");
    let data = noise(1_000_000);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
    assert_eq!(net.count(is_join), 1);
    let accepted = net.accepted()[0];
    let (now, path) = (net.now, to_first_address().reversed());
    net.hosts[1]
        .remove_path(now, accepted, path)
        .expect("the other works");
    net.run_for(SECS(1));
    let removal = |seen: &Seen| matches!(seen.option(), Some(Multipath::RemoveAddresses(_)));
    assert_eq!(net.count(removal), 0);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
}

/// From the opener's second address to the server's first one.
fn to_first_address() -> PathAddress {
    PathAddress {
        remote: Net::path(0).remote,
        ..Net::path(1)
    }
}

/// What the server says, in the place of its last acknowledgement.
fn say(net: &mut Net, option: Multipath) {
    let bare = |seen: &&Seen| seen.from == 1 && seen.path == 0 && !seen.is_data() && !seen.has(Flags::SYN);
    let last = net.log.iter().rfind(bare).expect("an acknowledgement").clone();
    let mut header = last.header;
    header.options.multipath = Some(option);
    let mut datagram = Datagram::empty();
    header.emit(&[], Net::path(0).reversed(), &mut datagram.head);
    datagram.path = Net::path(0);
    net.hosts[0].handle(net.now, Input::Datagram(&mut datagram));
    net.run_for(MS(1));
}

/// The connection lives on the last subflow that works, whatever its peer says of addresses.
#[test]
fn a_peer_that_takes_back_all_its_addresses_keeps_one_subflow() {
    let mut net = Net::pair(&[], &[line(20, 0), line(20, 1), line(20, 2)]);
    let flow = net.open(0);
    let data = noise(1_000_000);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
    assert_eq!(net.count(is_join), 2);
    for id in (0..=255).rev() {
        say(&mut net, Multipath::RemoveAddresses(Addresses::one(id)));
    }
    net.run_for(SECS(200));
    assert_eq!(net.count(is_join), 2, "nobody dials what is gone");
    let reset = |seen: &Seen| seen.from == 0 && seen.has(Flags::RST);
    assert_eq!(net.count(reset), 2);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
}

/// RFC 8684 §3.4.1: joins go to the port that is announced; those to other addresses to that of the connection.
#[test]
fn an_announced_port_is_that_of_its_address_alone() {
    let (mut net, flow, accepted) = waiting(3);
    let mut keys = None;
    for seen in &net.log {
        if let Some(Multipath::Capable(said)) = seen.option() {
            keys = keys.or(said.sender.zip(said.receiver));
        }
    }
    let (client, server) = keys.expect("the third segment has both");
    let server = Keys {
        local: server,
        remote: client,
        hash: JoinHash::Sha256,
    };
    let proof = server.prove_address(&[9, 10, 0, 1, 2, 0x1f, 0x90]);
    let elsewhere = AddAddress {
        id: 9,
        ip: Net::path(1).remote.ip(),
        port: Some(8080),
        proof: Some(proof),
    };
    say(&mut net, Multipath::AddAddress(elsewhere));
    say(&mut net, Multipath::AddAddress(elsewhere));
    net.run_for(SECS(1));
    announce(&mut net, accepted, 2);
    net.run_for(SECS(1));
    let joins = net.log.iter().filter(|seen| is_join(seen));
    let ports: Vec<_> = joins
        .map(|seen| (seen.path, seen.header.destination_port))
        .collect();
    assert_eq!(ports[0], (1, 8080));
    assert!(ports.contains(&(2, PORT)), "{ports:?}");
    assert_eq!(net.count(is_echo), 3);
    let data = noise(100_000);
    assert!(net.transfer(flow, &data, SECS(5)) == data);
}

//! Rules of the path manager, without subflows.

use super::*;
use restp_services::connection_management::JoinHash;

const KEYS: Keys = Keys {
    local: [1; 8],
    remote: [2; 8],
    hash: JoinHash::Sha256,
};

fn path(line: u8) -> PathAddress {
    PathAddress {
        local: ([10, 0, line, 1], 0).into(),
        remote: ([10, 0, line, 2], 0).into(),
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// An end that has opened a connection on path 0.
fn opener() -> PathManager {
    let mut manager = PathManager::new(true, true);
    manager.begin(path(0), 80);
    manager
}

fn announced(id: u8, line: u8) -> AddAddress {
    AddAddress::new(id, path(line).remote.ip(), KEYS)
}

fn notices(manager: &mut PathManager) -> Vec<Multipath> {
    manager.notices.drain(..).collect()
}

/// The seconds between failures and the next dial of path 0.
fn pauses(manager: &mut PathManager, count: usize) -> Vec<u64> {
    let mut now = at(1000);
    let mut pause = || {
        manager.on_end(now, path(0), Ending::Failed);
        let next = manager.deadline().expect("it is dialled again");
        let waited = next.since(now).as_nanos() / 1_000_000_000;
        assert_eq!(manager.take_dial(now), None, "not yet");
        now = next;
        assert!(manager.take_dial(now).is_some_and(|dial| dial.again));
        waited
    };
    (0..count).map(|_| pause()).collect()
}

#[test]
fn a_pair_that_fails_is_dialled_after_pauses_that_double() {
    assert_eq!(pauses(&mut opener(), 8), [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn a_subflow_that_worked_for_a_minute_begins_afresh_and_a_flapping_one_does_not() {
    let mut manager = opener();
    pauses(&mut manager, 4);
    manager.on_up(at(2000), path(0));
    manager.on_end(at(2059), path(0), Ending::Failed);
    assert_eq!(manager.deadline(), Some(at(2059 + 16)));
    manager.take_dial(at(2100));
    manager.on_up(at(2100), path(0));
    manager.on_end(at(2160), path(0), Ending::Failed);
    assert_eq!(manager.deadline(), Some(at(2161)));
}

#[test]
fn what_an_end_wanted_to_end_is_not_dialled_again() {
    let mut manager = opener();
    manager.on_end(at(1), path(0), Ending::Wanted);
    assert_eq!((manager.deadline(), manager.take_dial(at(1000))), (None, None));
    let mut once = PathManager::new(true, false);
    once.begin(path(0), 80);
    once.on_end(at(1), path(0), Ending::Failed);
    assert_eq!((once.deadline(), once.take_dial(at(1000))), (None, None));
}

#[test]
fn a_pair_waits_for_its_announcement_and_again_after_its_removal() {
    let mut manager = opener();
    assert!(manager.add(path(1), false, false));
    assert!(!manager.add(path(1), false, true), "it is used already");
    assert_eq!(manager.take_dial(at(1)), None);
    manager.on_announced(announced(1, 1));
    assert_eq!(manager.take_dial(at(1)).map(|dial| dial.path), Some(path(1)));
    manager.on_removed(&Addresses::one(1), &[]);
    manager.on_end(at(2), path(1), Ending::Wanted);
    assert_eq!((manager.deadline(), manager.take_dial(at(100))), (None, None));
    manager.on_announced(announced(1, 1));
    assert!(manager.take_dial(at(100)).is_some_and(|dial| dial.again));
}

#[test]
fn our_address_is_taken_back_when_it_goes_and_its_pair_dialled_when_it_returns() {
    let mut manager = opener();
    manager.add(path(1), false, true);
    assert_eq!(manager.id_of(path(1).local), Some(1));
    manager.take_dial(at(1));
    manager.on_local(at(2), path(1).local, false);
    manager.on_end(at(2), path(1), Ending::Wanted);
    let gone = Multipath::RemoveAddresses(Addresses::one(1));
    assert_eq!(notices(&mut manager), [gone]);
    assert_eq!(manager.take_dial(at(50)), None);
    manager.on_local(at(60), path(1).local, true);
    assert_eq!(manager.take_dial(at(60)).map(|dial| dial.path), Some(path(1)));
    assert_eq!(notices(&mut manager), [], "who dials announces nothing");
}

#[test]
fn announcements_leave_four_times_with_waits_that_double_until_their_echo() {
    let local = path(1).remote;
    let mut manager = PathManager::new(false, true);
    manager.begin(path(0).reversed(), 80);
    assert!(manager.announce(at(10), local));
    let mut times = Vec::new();
    while let Some(due) = manager.deadline() {
        manager.on_deadline(due, Duration::from_secs(1), KEYS);
        let said = Multipath::AddAddress(AddAddress::new(1, local.ip(), KEYS));
        assert_eq!(notices(&mut manager), [said]);
        times.push(due);
    }
    assert_eq!(times, [at(10), at(11), at(13), at(17)]);
    assert!(manager.announce(at(30), local));
    manager.on_deadline(at(30), Duration::from_secs(1), KEYS);
    manager.on_echo(AddAddress::new(0, local.ip(), KEYS).echo());
    manager.on_echo(AddAddress::new(1, path(2).remote.ip(), KEYS).echo());
    assert_eq!(manager.deadline(), Some(at(31)), "no echo of what was said");
    manager.on_echo(AddAddress::new(1, local.ip(), KEYS).echo());
    assert_eq!(manager.deadline(), None);
}

#[test]
fn the_longest_wait_for_an_echo_is_two_minutes() {
    let mut manager = PathManager::new(false, true);
    manager.begin(path(0).reversed(), 80);
    manager.announce(at(0), path(1).remote);
    for _ in 0..3 {
        let due = manager.deadline().expect("no echo yet");
        manager.on_deadline(due, Duration::from_secs(60), KEYS);
    }
    assert_eq!(manager.deadline(), Some(at(60 + 120 + 120)));
}

/// RFC 8684 §3.4.1: another address under a known identifier is ignored.
#[test]
fn an_identifier_keeps_its_address() {
    let mut manager = opener();
    manager.add(path(1), false, false);
    manager.add(path(2), false, false);
    manager.on_announced(announced(1, 1));
    manager.on_announced(announced(1, 2));
    assert_eq!(manager.take_dial(at(1)).map(|dial| dial.path), Some(path(1)));
    assert_eq!(manager.take_dial(at(1)), None);
}

#[test]
fn floods_of_announcements_and_removals_take_no_memory() {
    let mut manager = opener();
    for id in 0..=255 {
        manager.on_announced(announced(id, id));
        manager.on_removed(&Addresses::one(id.wrapping_add(100)), &[]);
    }
    assert_eq!(manager.announced.len(), 1 + MAX_ADDRESSES, "and the first one");
    assert_eq!(manager.notices.len(), 3 * MAX_ADDRESSES);
    let announced: usize = (0..100)
        .map(|line| usize::from(manager.announce(at(1), path(line).local)))
        .sum();
    assert_eq!(announced, MAX_ADDRESSES);
    (0..100).for_each(|line| manager.on_echo(AddAddress::new(line, path(line).local.ip(), KEYS).echo()));
    assert!(
        !manager.announce(at(2), path(200).local),
        "the peer still has them"
    );
    manager.on_local(at(3), path(0).local, false);
    assert!(manager.announce(at(3), path(200).local));
}

#[test]
fn identifiers_are_those_of_a_byte() {
    let mut manager = opener();
    for line in 0..=255 {
        assert_eq!(manager.id_of(path(line).local), Some(line));
    }
    assert_eq!(manager.id_of(([10, 1, 0, 1], 0).into()), None);
    assert_eq!(manager.id_of(path(255).local), Some(255));
}

/// RFC 8684 §3.4.1: "a sender that wants to trigger a new incoming connection attempt ... can refresh ADD_ADDR information".
#[test]
fn an_address_that_is_announced_again_is_dialled_again() {
    for redials in [true, false] {
        let mut manager = PathManager::new(true, redials);
        manager.begin(path(0), 80);
        manager.add(path(1), false, false);
        manager.on_announced(announced(1, 1));
        assert!(manager.take_dial(at(1)).is_some());
        manager.on_announced(announced(1, 1));
        assert_eq!(manager.take_dial(at(1)), None, "it is being dialled");
        manager.on_end(at(2), path(1), Ending::Failed);
        assert_eq!(manager.take_dial(at(2)), None);
        manager.on_announced(announced(1, 1));
        assert!(manager.take_dial(at(2)).is_some());
        manager.on_up(at(3), path(1));
        manager.on_announced(announced(1, 1));
        assert_eq!(manager.take_dial(at(3)), None, "it works");
    }
}

/// RFC 8684 §3.4.1: an identifier keeps its address, and may be announced with another port. Port 0 is none.
#[test]
fn the_port_that_was_announced_last_is_dialled() {
    let mut manager = opener();
    manager.add(path(1), false, false);
    let mut ports = Vec::new();
    for port in [None, Some(8080), Some(8081), Some(0), None] {
        manager.on_announced(AddAddress {
            port,
            ..announced(1, 1)
        });
        ports.extend(manager.take_dial(at(1)).map(|dial| dial.port));
        manager.on_end(at(1), path(1), Ending::Failed);
    }
    assert_eq!(ports, [80, 8080, 8081, 80, 80]);
    let echoed = notices(&mut manager);
    let zero = AddAddress {
        port: Some(0),
        ..announced(1, 1)
    };
    assert!(echoed.contains(&Multipath::AddAddress(zero.echo())), "as it came");
}

/// The identifier 0 is the address that the connection was opened with (RFC 8684 §3.2), and that one needs no announcement.
#[test]
fn the_first_address_of_the_peer_is_known_and_keeps_its_identifier() {
    let mut manager = opener();
    manager.add(path(1), false, false);
    manager.on_announced(announced(0, 1));
    assert_eq!(manager.take_dial(at(1)), None);
    let from_elsewhere = PathAddress {
        local: path(1).local,
        ..path(0)
    };
    manager.add(from_elsewhere, false, false);
    assert_eq!(
        manager.take_dial(at(1)).map(|dial| dial.path),
        Some(from_elsewhere)
    );
}

#[test]
fn an_address_with_two_identifiers_is_gone_when_both_are() {
    let mut manager = opener();
    manager.add(path(1), false, false);
    let second = AddAddress {
        port: Some(8080),
        ..announced(2, 1)
    };
    manager.on_announced(announced(1, 1));
    manager.on_announced(second);
    manager.on_removed(&Addresses::one(1), &[]);
    assert_eq!(manager.take_dial(at(1)).map(|dial| dial.port), Some(8080));
    manager.on_removed(&Addresses::one(2), &[]);
    manager.on_end(at(1), path(1), Ending::Failed);
    assert_eq!(manager.take_dial(at(100)), None);
}

/// While no subflow works nothing can be said. Then the last word comes last.
#[test]
fn what_was_said_last_of_an_address_leaves_last() {
    let local = path(1).remote;
    let mut manager = PathManager::new(false, true);
    manager.begin(path(0).reversed(), 5000);
    manager.announce(at(0), local);
    let added = Multipath::AddAddress(AddAddress::new(1, local.ip(), KEYS));
    let gone = Multipath::RemoveAddresses(Addresses::one(1));
    for (ups, last) in [(2, added), (3, gone)] {
        for up in 0..ups {
            manager.on_local(at(up), local, up % 2 == 1);
            manager.on_deadline(at(up), Duration::from_secs(1), KEYS);
        }
        assert_eq!(notices(&mut manager).last(), Some(&last));
    }
}

#[test]
fn an_address_that_another_subflow_uses_is_not_taken_back() {
    let mut manager = PathManager::new(false, true);
    manager.begin(path(0).reversed(), 5000);
    manager.drop_line(path(0).reversed(), true);
    assert_eq!(notices(&mut manager), []);
    manager.drop_line(path(0).reversed(), false);
    let gone = Multipath::RemoveAddresses(Addresses::one(0));
    assert_eq!(notices(&mut manager), [gone]);
}

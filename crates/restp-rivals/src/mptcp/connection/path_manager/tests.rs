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
    manager.begin(path(0));
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
    once.begin(path(0));
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
    manager.begin(path(0).reversed());
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
    manager.begin(path(0).reversed());
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
    assert_eq!(manager.announced.len(), MAX_ADDRESSES);
    assert_eq!(manager.notices.len(), 3 * MAX_ADDRESSES);
    let announced: usize = (0..100)
        .map(|line| usize::from(manager.announce(at(1), path(line).local)))
        .sum();
    assert_eq!(announced, MAX_ADDRESSES);
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

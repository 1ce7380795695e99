//! By which path acknowledgements return where paths share the numbers (CMT §3, `ack-return`).

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{Flow, FlowId};

fn returning_by(path: &str) -> (Pair, FlowId, Dead) {
    let set = [
        ("numbering", "shared"),
        ("scheduling", "round-robin"),
        ("ack", "positive+sack"),
        ("recovery", "pipe"),
        ("ack-return", path),
    ];
    two_paths("geo-spread", &set)
}

/// How many packets the receiver sends by each path in a second of data that come by both.
fn answers(pair: &mut Pair, flows: (FlowId, FlowId)) -> [usize; 2] {
    let by = packets(pair, flows);
    assert!(by[0][0] > 100 && by[0][1] > 100, "data by both");
    [by[1][0], by[1][1]]
}

/// The packets of a second of data: those that each end sends by each of the client's first three addresses.
fn packets(pair: &mut Pair, flows: (FlowId, FlowId)) -> [[usize; 3]; 2] {
    let before = pair.log.len();
    stream(pair, flows, secs(1));
    let log = &pair.log[before..];
    let by = |n: u8, from: usize| {
        log.iter()
            .filter(|seen| seen.from == from && [seen.path.local, seen.path.remote].contains(&client(n)))
            .count()
    };
    [0, 1].map(|from| [1, 2, 3].map(|n| by(n, from)))
}

#[test]
fn acknowledgements_return_by_the_path_that_is_named() {
    for (path, is_used) in [
        ("1", [true, false]),
        ("2", [false, true]),
        ("3", [true, true]),
        ("any", [true, true]),
    ] {
        let (mut pair, flow, _) = returning_by(path);
        let accepted = both_up(&mut pair);
        let answers = answers(&mut pair, (flow, accepted));
        assert_eq!(answers.map(|count| count > 50), is_used, "{path}: {answers:?}");
        assert!(answers.iter().sum::<usize>() > 100, "{path}: {answers:?}");
    }
}

/// The second line began the association, and the first joined later.
#[test]
fn a_path_has_the_number_of_its_line_whichever_was_up_first() {
    for (path, is_used) in [("1", [true, false]), ("2", [false, true])] {
        let (mut pair, flow, dead) = returning_by(path);
        kill(&dead, 1);
        pair.run_for(MS * 100);
        heal(&dead);
        pair.run_for(secs(3));
        let accepted = pair.accepted().expect("accepted");
        let answers = answers(&mut pair, (flow, accepted));
        assert_eq!(answers.map(|count| count > 50), is_used, "{path}: {answers:?}");
    }
}

/// Who only acknowledges cannot see that they do not arrive: the sender finds out, whose both paths are silent then.
#[test]
fn where_the_path_that_is_named_is_dead_they_return_by_the_other() {
    let (mut pair, flow, dead) = returning_by("1");
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    kill(&dead, 1);
    let cut = pair.now;
    let (times, _) = stream(&mut pair, (flow, accepted), secs(3));
    let gap = longest_gap(&times, cut);
    assert!(gap < secs(1), "{gap:?}");
}

/// Numbers still came by it, and acknowledgements kept to it for good: the sender, that had none, asked, and heard no more than the
/// answers by the other path, after seconds of silence each time.
#[test]
fn where_the_path_that_is_named_is_dead_on_the_way_back_they_return_by_the_other() {
    let (mut pair, flow, dead) = returning_by("1");
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), secs(1));
    dead.borrow_mut().insert((client(1), 1));
    let cut = pair.now;
    let (times, _) = stream(&mut pair, (flow, accepted), secs(6));
    let gap = longest_gap(&times, cut);
    assert!(gap < secs(2), "{gap:?}");
}

/// The first line goes and comes again, as the third: the second one keeps its number.
#[test]
fn a_path_keeps_its_number_when_another_is_removed() {
    for (path, is_used) in [("1", [true, true]), ("2", [false, true]), ("3", [true, false])] {
        let (mut pair, flow, _) = returning_by(path);
        let accepted = both_up(&mut pair);
        let first = line(&pair, 1);
        pair.ends[0]
            .remove_path(pair.now, flow, first)
            .expect("another works");
        pair.run_for(secs(1));
        pair.ends[0]
            .add_path(pair.now, flow, first, false)
            .expect("one more");
        pair.run_for(secs(2));
        let answers = answers(&mut pair, (flow, accepted));
        assert_eq!(answers.map(|count| count > 50), is_used, "{path}: {answers:?}");
    }
}

/// The receiver took the path that began the association for the lowest line that no living path named, so the number of a dead one
/// fell to it.
#[test]
fn a_path_keeps_its_number_where_one_before_it_never_came_up_or_is_removed() {
    for (path, removed, is_used) in [
        ("2", false, [false, true, false]),
        ("2", true, [false, true, false]),
        ("1", true, [false, true, true]),
        ("3", true, [false, false, true]),
    ] {
        let (mut pair, flow, dead) = returning_by(path);
        let third = line(&pair, 3);
        pair.ends[0]
            .add_path(pair.now, flow, third, false)
            .expect("one more");
        kill(&dead, 1);
        pair.run_for(secs(1));
        if removed {
            heal(&dead);
            pair.run_for(secs(3));
            let first = line(&pair, 1);
            pair.ends[0]
                .remove_path(pair.now, flow, first)
                .expect("others work");
            pair.run_for(secs(1));
        }
        let accepted = pair.accepted().expect("accepted");
        let by = packets(&mut pair, (flow, accepted));
        assert!(by[0][1] > 100 && by[0][2] > 100, "data by both: {by:?}");
        assert_eq!(
            by[1].map(|count| count > 50),
            is_used,
            "{path}, {removed}: {by:?}"
        );
    }
}

/// A path that carries nothing is asked every five seconds, and each question freed acknowledgements from the path that is named.
#[test]
fn questions_on_an_idle_path_change_nothing() {
    let (mut pair, flow, _) = returning_by("1");
    let accepted = both_up(&mut pair);
    let third = line(&pair, 3);
    pair.ends[0]
        .add_path(pair.now, flow, third, true)
        .expect("a spare one");
    pair.run_for(secs(1));
    let before = pair.log.len();
    for _ in 0..240 {
        pair.write(0, flow, &noise(5600));
        pair.run_for(MS * 50);
        pair.read_all(1, accepted);
    }
    let by = |n: u8, from: usize| {
        let log = pair.log[before..].iter();
        log.filter(|seen| seen.from == from && [seen.path.local, seen.path.remote].contains(&client(n)))
            .count()
    };
    assert!(by(3, 0) >= 2, "it is asked");
    assert!(by(2, 0) > 100 && by(1, 1) > 100, "data by both");
    assert!(by(2, 1) < 10, "{} of {}", by(2, 1), by(1, 1));
}

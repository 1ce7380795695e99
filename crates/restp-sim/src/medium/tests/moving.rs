//! Stations that walk out of range and back.

use super::*;

/// From 100 m to 1000 m and back, 10 m a second: out of range from 27 s to 153 s.
fn walk() -> MediumSpec {
    let mut spec = line(&[0.0, 100.0]);
    let at = |s, x| (seconds(s), Place::new(x, 0.0));
    spec.stations[1].waypoints = vec![at(90, 1000.0), at(180, 100.0)];
    spec
}

#[test]
fn a_station_out_of_range_gets_nothing_until_it_is_back() {
    let spec = walk();
    let (mut medium, mut times, mut drops) = (Medium::new(&spec, 1), Vec::new(), Tally::default());
    for _ in 0..2 {
        medium.offer(Time::ZERO, 0, parcel(0, PACKET)).expect("room");
    }
    while let Some(now) = medium.next().filter(|now| *now < seconds(200)) {
        match medium.advance(now) {
            Some(Outcome::Delivered { .. }) => times.push(now),
            Some(Outcome::Dropped { reason, .. }) => drops.on_drop(reason),
            None => continue,
        }
        medium.offer(now, 0, parcel(0, PACKET)).expect("room");
    }
    let away = seconds(27)..seconds(153);
    let gap = times
        .windows(2)
        .find(|pair| pair[1].since(pair[0]) > Duration::from_secs(1))
        .expect("a gap");
    let near = |time: Time, edge: Time| time.since(edge).max(edge.since(time)) < Duration::from_millis(200);
    assert!(near(gap[0], away.start) && near(gap[1], away.end), "{gap:?}");
    assert!(drops.drops(DropReason::Outage) > 1000, "{drops:?}");
    assert_eq!(drops.dropped.len(), 1, "{drops:?}");
    // As fast as ever before and after: about 177 packets a second.
    assert!(times.len() > 73 * 170, "{}", times.len());
}

#[test]
fn who_meets_later_is_a_link_and_who_never_does_is_alone() {
    let spec = walk();
    assert_eq!(
        spec.pairs().iter().map(|pair| pair.apart).collect::<Vec<_>>(),
        [false]
    );
    let mut far = line(&[0.0, 1000.0]);
    assert!(far.check().is_err());
    far.stations[1].waypoints = vec![(seconds(60), Place::new(370.0, 0.0))];
    assert_eq!(far.check(), Ok(()));
    assert_eq!(
        far.pairs().iter().map(|pair| pair.apart).collect::<Vec<_>>(),
        [true]
    );
    let tally = &saturate(&far, &[vec![0]], (2, seconds(59)), 1)[0];
    assert_eq!((tally.delivered, tally.drops(DropReason::Collision)), (0, 0));
    assert!(saturate(&far, &[vec![0]], (2, seconds(61)), 1)[0].delivered > 100);
}

#[test]
fn a_walk_is_the_same_twice() {
    let run = |seed| saturate(&walk(), &[vec![0], vec![1]], (2, seconds(200)), seed);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

//! What a cache that forgets the least recently used is good for, without packets: Che's approximation (Che, Tung, Wang 2002). An object
//! stays for a characteristic time T after it was used last, the same for all: T is such that as many objects as there is room for are
//! expected to have been used within it, and a question is answered if its object was.
//!
//! It holds for requests that do not depend on each other, and is exact where all objects are alike.

use crate::traffic::Popularity;

/// Halvings of the interval in which T lies: a double has no more digits.
const HALVINGS: u32 = 200;

/// The share of questions that a cache with room for so many objects answers.
pub fn lru_hit_share(popularity: &Popularity, room: f64) -> f64 {
    let shares: Vec<f64> = popularity.shares().collect();
    if room <= 0.0 {
        return 0.0;
    }
    if room >= shares.len() as f64 {
        return 1.0;
    }
    let used = |share: f64, within: f64| 1.0 - exp_negative(share * within);
    let expected = |within: f64| shares.iter().map(|share| used(*share, within)).sum::<f64>();
    let (mut low, mut high) = (0.0, room);
    while expected(high) < room {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if expected(middle) < room {
            low = middle;
        } else {
            high = middle;
        }
    }
    shares.iter().map(|share| share * used(*share, high)).sum()
}

/// e to the power of -x, for any x from 0 on.
fn exp_negative(x: f64) -> f64 {
    if x > 600.0 { 0.0 } else { crate::traffic::exp(-x) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;
    use std::collections::{BTreeMap, BTreeSet};

    /// Objects that are all alike are there as often as there is room for them.
    #[test]
    fn it_is_exact_where_all_objects_are_alike() {
        let alike = Popularity::zipf(1000, 0.0);
        for room in [1.0, 10.0, 500.0, 999.0] {
            assert!(
                (lru_hit_share(&alike, room) - room / 1000.0).abs() < 1e-9,
                "{room}"
            );
        }
        assert_eq!(
            (lru_hit_share(&alike, 0.0), lru_hit_share(&alike, 1000.0)),
            (0.0, 1.0)
        );
    }

    /// Objects, exponent, room, and the share of hits by bisection in Python, with `math.expm1` and `math.fsum`.
    const KNOWN: [(u64, f64, f64, f64); 4] = [
        (10_000, 0.8, 100.0, 0.15662463575929522),
        (10_000, 0.8, 1000.0, 0.43665972223071803),
        (10_000, 1.2, 100.0, 0.6563414468009114),
        (100, 0.5, 10.0, 0.14282755224782845),
    ];

    #[test]
    fn it_is_what_others_compute() {
        for (objects, exponent, room, expected) in KNOWN {
            let found = lru_hit_share(&Popularity::zipf(objects, exponent), room);
            assert!(
                (found - expected).abs() < 1e-9,
                "{objects} {exponent} {room}: {found}"
            );
        }
    }

    /// The list itself, asked a million times.
    #[test]
    fn a_list_of_the_least_recently_used_answers_as_often() {
        let (popularity, room) = (Popularity::zipf(2000, 0.8), 200);
        let mut stream = Stream::named(1, "lru");
        let (mut last, mut by_time) = (BTreeMap::new(), BTreeSet::new());
        let (mut hits, warm) = (0, 20_000);
        for time in 0..400_000u64 {
            let object = popularity.draw(&mut stream);
            if let Some(used) = last.insert(object, time) {
                by_time.remove(&(used, object));
                hits += u64::from(time >= warm);
            }
            by_time.insert((time, object));
            if by_time.len() > room
                && let Some((_, oldest)) = by_time.pop_first()
            {
                last.remove(&oldest);
            }
        }
        let found = hits as f64 / (400_000 - warm) as f64;
        let expected = lru_hit_share(&popularity, room as f64);
        assert!((found - expected).abs() < 0.003, "{found} {expected}");
    }
}

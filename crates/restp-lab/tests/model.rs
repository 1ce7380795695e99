//! The Markov chain of SMT (SMT §5) by itself: its values, both ways of solving it, and its claims.

use rayon::prelude::*;
use restp_lab::model::{Parameters, Scheme, exact, monte_carlo};
use std::sync::LazyLock;

fn missing(missing: f64) -> Parameters {
    Parameters {
        missing,
        ..Parameters::default()
    }
}

fn mbps(scheme: Scheme, parameters: Parameters) -> f64 {
    exact(scheme, parameters)
        .expect("a chain that settles")
        .throughput_bps
        / 1e6
}

/// Mbit/s of each scheme with 0 to 9 % of the packets missing: solved once, for all tests.
static SOLVED: LazyLock<Vec<[f64; 3]>> = LazyLock::new(|| {
    let row = |percent: u32| Scheme::ALL.map(|scheme| mbps(scheme, missing(f64::from(percent) / 100.0)));
    (0..10).into_par_iter().map(row).collect()
});

fn solved(scheme: Scheme, chance: f64) -> f64 {
    SOLVED[(chance * 100.0).round() as usize][scheme as usize]
}

/// Chance of a missing packet, and the Mbit/s of CMT, MFR and AMFR.
const VALUES: [(f64, [f64; 3]); 6] = [
    (0.00, [1.000, 1.000, 1.000]),
    (0.01, [0.926, 0.961, 0.974]),
    (0.03, [0.852, 0.903, 0.944]),
    (0.05, [0.812, 0.853, 0.924]),
    (0.07, [0.786, 0.808, 0.907]),
    (0.09, [0.767, 0.767, 0.892]),
];

#[test]
fn the_chain_has_the_values_of_its_rules() {
    let mut wrong = Vec::new();
    for (chance, expected) in VALUES {
        for (scheme, expected) in Scheme::ALL.into_iter().zip(expected) {
            let solved = solved(scheme, chance);
            if format!("{solved:.3}") != format!("{expected:.3}") {
                wrong.push(format!("{scheme:?} at {chance}: {solved:.5}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn drawing_agrees_with_solving_within_a_hundredth() {
    for scheme in Scheme::ALL {
        for chance in [0.01, 0.05, 0.09] {
            let runs = (1..=3).map(|seed| monte_carlo(scheme, missing(chance), seed, 20_000.0).unwrap());
            let drawn = runs.map(|run| run.throughput_bps).sum::<f64>() / 3e6;
            let solved = solved(scheme, chance);
            assert!(
                (drawn / solved - 1.0).abs() < 0.01,
                "{scheme:?} at {chance}: {drawn} {solved}"
            );
        }
    }
}

/// Claims of SMT §5.7: equal without losses, falling with them, AMFR first, and MFR not behind CMT on average.
#[test]
fn the_schemes_order_as_published() {
    let table = &SOLVED;
    assert!(table[0].iter().all(|value| (value - table[0][0]).abs() < 1e-9));
    for pair in table.windows(2) {
        assert!((0..3).all(|scheme| pair[1][scheme] < pair[0][scheme]), "{pair:?}");
    }
    assert!(table[1..].iter().all(|[cmt, mfr, amfr]| amfr > mfr && amfr > cmt));
    let mean = |scheme: usize| table[1..].iter().map(|row| row[scheme]).sum::<f64>();
    assert!(mean(1) >= mean(0));
}

#[test]
fn without_late_arrivals_waiting_for_more_reports_gains_nothing() {
    let parameters = Parameters {
        still_late: 1.0,
        ..missing(0.05)
    };
    assert!((mbps(Scheme::Amfr, parameters) - mbps(Scheme::Mfr, parameters)).abs() < 1e-9);
}

#[test]
fn a_parameter_out_of_range_is_named() {
    for (parameters, name) in [
        (missing(1.0), "missing"),
        (missing(f64::NAN), "missing"),
        (
            Parameters {
                buffer: 1_000,
                ..missing(0.0)
            },
            "buffer",
        ),
        (
            Parameters {
                blocked_rounds: 0.5,
                ..missing(0.0)
            },
            "blocked-rounds",
        ),
    ] {
        let refused = exact(Scheme::Cmt, parameters).unwrap_err().to_string();
        assert!(refused.starts_with(name), "{refused}");
    }
}

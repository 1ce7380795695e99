//! Saturation throughput of one cell beside the model of Bianchi (2000), "Performance analysis of the IEEE 802.11
//! distributed coordination function", IEEE JSAC 18(3).

use super::super::timing::DATA_HEADER_BYTES;
use super::*;

/// Transmission probability of a station per slot: equations (7) and (9), by bisection.
fn transmits(stations: u32, window: f64, doublings: i32) -> f64 {
    let collides = |tau: f64| 1.0 - (1.0 - tau).powi(stations as i32 - 1);
    let tau_of = |p: f64| {
        2.0 * (1.0 - 2.0 * p)
            / ((1.0 - 2.0 * p) * (window + 1.0) + p * window * (1.0 - (2.0 * p).powi(doublings)))
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let tau = (low + high) / 2.0;
        if tau_of(collides(tau)) > tau {
            low = tau
        } else {
            high = tau
        }
    }
    low
}

/// Bits of 1000-byte payloads per microsecond: equation (13) with the times of this medium. After frames that met,
/// stations wait for EIFS.
fn model(spec: &MediumSpec, stations: u32) -> f64 {
    let us = |span: Duration| span.as_nanos() as f64 / 1e3;
    let (timing, mode) = (&spec.timing, spec.rates.fastest());
    let tau = transmits(stations, f64::from(timing.cw_min + 1), 5);
    let quiet = (1.0 - tau).powi(stations as i32);
    let alone = f64::from(stations) * tau * (1.0 - tau).powi(stations as i32 - 1);
    let (success, collision) = if PACKET + DATA_HEADER_BYTES > spec.rts_threshold {
        (timing.rts() + timing.after_rts(&mode, PACKET), timing.rts())
    } else {
        let data = timing.data(&mode, PACKET);
        (data + timing.after_data(), data)
    };
    let time = quiet * us(timing.slot)
        + alone * us(success + timing.difs)
        + (1.0 - quiet - alone) * us(collision + timing.eifs);
    alone * 8000.0 / time
}

/// Stations on a circle of a metre around one that receives.
fn cell(stations: u32, rts_threshold: u32) -> MediumSpec {
    let mut spec = line(&[0.0]);
    for n in 0..stations {
        let angle = f64::from(n) / f64::from(stations) * std::f64::consts::TAU;
        spec.stations.push(Station::new(
            &format!("s{n}"),
            Place::new(angle.cos(), angle.sin()),
        ));
    }
    spec.rts_threshold = rts_threshold;
    // The model never gives up.
    (spec.short_retries, spec.long_retries) = (255, 255);
    spec
}

fn measured(spec: &MediumSpec, stations: u32, end: Time) -> f64 {
    let flows: Vec<Vec<u32>> = (1..=stations as usize).map(|n| vec![hop(spec, n, 0)]).collect();
    let tallies = saturate(spec, &flows, (2, end), 1);
    tallies.iter().map(|tally| mbps(tally, end)).sum()
}

fn within_three_percent(rts_threshold: u32) {
    let mut out = Vec::new();
    for stations in [2, 3, 5, 10, 20, 35, 50] {
        let spec = cell(stations, rts_threshold);
        let (measured, model) = (measured(&spec, stations, seconds(60)), model(&spec, stations));
        out.push((stations, measured, model, measured / model - 1.0));
    }
    let far: Vec<_> = out.iter().filter(|row| row.3.abs() > 0.03).collect();
    assert!(far.is_empty(), "stations, measured, model: {out:?}");
}

#[test]
fn saturated_stations_with_rts_carry_what_the_model_says() {
    within_three_percent(0);
}

#[test]
fn saturated_stations_without_rts_carry_what_the_model_says() {
    within_three_percent(3000);
}

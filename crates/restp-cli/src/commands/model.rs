//! `restp model`: what a scheme does in the long run, without packets.

use crate::args::{Model, ModelName};
use crate::failure::Failure;
use crate::output::Output;
use restp_base::units;
use restp_lab::model::{Measures, Parameters, Scheme, exact, monte_carlo};
use serde::Serialize;

/// One scheme at one chance of missing packets.
#[derive(Serialize)]
struct Row {
    scheme: Scheme,
    missing_chance: f64,
    #[serde(flatten)]
    measures: Measures,
}

/// Solves it, or draws.
///
/// # Errors
/// Exit code 2 for a parameter out of its range, 1 for a chain that does not settle.
pub fn execute(arguments: &Model, output: Output) -> Result<(), Failure> {
    let ModelName::Smt = arguments.name;
    let parameters = parameters(arguments)?;
    let drawn = arguments.draw.as_deref().map(seconds).transpose()?;
    if drawn == Some(0.0) {
        return Err(Failure::input(
            "--draw: nothing can be drawn in no time; write a time such as 1h",
        ));
    }
    let chances = match &arguments.missing[..] {
        [] => (0..=9)
            .map(|percent| f64::from(percent) / 100.0)
            .collect::<Vec<_>>(),
        given => given.to_vec(),
    };
    let point = |missing| Parameters {
        missing,
        ..parameters
    };
    let points: Vec<Parameters> = chances.into_iter().map(point).collect();
    for point in &points {
        point.check().map_err(Failure::input)?;
    }
    output.text("scheme  missing  throughput     window  round     back-off")?;
    for parameters in points {
        for scheme in Scheme::ALL {
            let measures = match drawn {
                None => exact(scheme, parameters).map_err(Failure::operation)?,
                Some(time) => {
                    monte_carlo(scheme, parameters, arguments.seed, time).map_err(Failure::input)?
                }
            };
            let row = Row {
                scheme,
                missing_chance: parameters.missing,
                measures,
            };
            output.result(&row, line)?;
        }
    }
    Ok(())
}

fn parameters(arguments: &Model) -> Result<Parameters, Failure> {
    let rate = units::rate(&arguments.rate).map_err(|error| Failure::input(format!("--rate: {error}")))?;
    Ok(Parameters {
        late: arguments.late,
        still_late: arguments.still_late,
        blocked_rounds: arguments.blocked_rounds,
        delay: seconds(&arguments.delay)?,
        rate: rate.as_bps() as f64,
        buffer: arguments.buffer,
        ..Parameters::default()
    })
}

fn seconds(time: &str) -> Result<f64, Failure> {
    let time = units::duration(time).map_err(|error| Failure::input(format!("{time}: {error}")))?;
    Ok(time.as_secs_f64())
}

fn line(row: &Row) -> String {
    let (scheme, measures) = (format!("{:?}", row.scheme).to_uppercase(), &row.measures);
    format!(
        "{scheme:<6}  {:<7}  {:.3} Mbit/s  {:>7.2}  {:>6.1} ms  {:>6.2} %",
        row.missing_chance,
        measures.throughput_bps / 1e6,
        measures.window,
        measures.round_s * 1e3,
        measures.back_off * 100.0
    )
}

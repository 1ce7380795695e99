//! A scenario and its runs.

use crate::errors::{broken, refused};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use restp_base::time::{Duration, Time};
use restp_lab::medium::{MediumSpec, Place};
use restp_lab::run::{self, Column, RunResult, Table, TracesWanted};
use restp_lab::{Job, Options};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A scenario of which every point has been validated.
#[pyclass(frozen, module = "restp._restp")]
pub struct Scenario(restp_lab::Scenario);

#[pymethods]
impl Scenario {
    #[new]
    #[pyo3(signature = (text, file=None, settings=None))]
    fn new(
        py: Python<'_>,
        text: String,
        file: Option<PathBuf>,
        settings: Option<Vec<(String, String)>>,
    ) -> PyResult<Self> {
        let settings = settings.unwrap_or_default();
        py.detach(|| restp_lab::Scenario::written(text, file, settings))
            .map(Scenario)
            .map_err(|error| refused(py, &error))
    }

    /// Its short name.
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    /// One line about it.
    #[getter]
    fn title(&self) -> &str {
        self.0.title()
    }

    /// Where each point lies: a JSON list of objects, axis to value.
    fn coordinates(&self) -> String {
        let points = self.0.points().iter();
        let all: Vec<Value> = points
            .map(|point| Value::Object(point.coordinates.clone()))
            .collect();
        Value::Array(all).to_string()
    }

    /// The flows of a point: `(name, transport)`.
    fn flows(&self, point: usize) -> PyResult<Vec<(String, String)>> {
        let flows = self.point(point)?.plan.flows.iter();
        Ok(flows
            .map(|flow| (flow.name.clone(), flow.transport.name().to_owned()))
            .collect())
    }

    /// The media of a point: a JSON list of objects, each with its ranges, its stations and who can receive whom.
    fn media(&self, point: usize) -> PyResult<String> {
        let media = self.point(point)?.plan.media.iter();
        Ok(Value::Array(media.map(medium).collect()).to_string())
    }

    /// From when to when a run of a point measures, in seconds.
    fn measured(&self, point: usize) -> PyResult<(f64, f64)> {
        let window = &self.point(point)?.plan.measure;
        let seconds = |at: Time| at.since(Time::ZERO).as_secs_f64();
        Ok((seconds(window.start), seconds(window.end)))
    }

    /// Every simulation there is to do: (point, seed), in the order of results.
    #[pyo3(signature = (seed=None, runs=None))]
    fn jobs(&self, seed: Option<u64>, runs: Option<u64>) -> PyResult<Vec<(usize, u64)>> {
        let options = Options {
            seed,
            runs,
            ..Options::DEFAULT
        };
        let jobs = run::jobs(self.0.points(), &options).map_err(|error| broken(&error))?;
        Ok(jobs.into_iter().map(|job| (job.point, job.seed)).collect())
    }

    /// Does these jobs on `threads` (all processors when None), without the interpreter's lock. `each` gets every result,
    /// a line of JSON, as soon as it is there. What it raises ends the rest.
    #[pyo3(signature = (jobs, threads, each))]
    fn run(
        &self,
        py: Python<'_>,
        jobs: Vec<(usize, u64)>,
        threads: Option<usize>,
        each: Py<PyAny>,
    ) -> PyResult<()> {
        for &(point, _) in &jobs {
            self.point(point)?;
        }
        let jobs = Vec::from_iter(jobs.into_iter().map(|(point, seed)| Job { point, seed }));
        let options = Options {
            threads,
            ..Options::DEFAULT
        };
        let mut raised = Ok(());
        let outcome = py.detach(|| {
            run::run_jobs(self.0.points(), &jobs, &options, |job, result| {
                let line = line(job.point, &result);
                raised = Python::attach(|py| {
                    py.check_signals()?;
                    each.call1(py, (PyBytes::new(py, &line),)).map(drop)
                });
                Ok(match raised {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                })
            })
        });
        raised?;
        outcome.map(drop).map_err(|error| broken(&error))
    }

    /// Runs one job and notes what happens: the result as a line of JSON, and tables of columns. A column is its kind
    /// (`integer`, `float`, `word`), its values as bytes (64 bits each, of words 32), and the words. `noted`: every datagram, and
    /// frames on the air between these times, in nanoseconds.
    fn trace<'py>(
        &self,
        py: Python<'py>,
        point: usize,
        seed: u64,
        every_ns: u64,
        rows: usize,
        noted: (bool, (u64, u64)),
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyDict>)> {
        let (sequence, (from_ns, until_ns)) = noted;
        let wanted = TracesWanted {
            every: Duration::from_nanos(every_ns),
            rows,
            sequence,
            air: Time::from_nanos(from_ns)..Time::from_nanos(until_ns),
        };
        let place = self.point(point)?;
        let (result, traces) = py
            .detach(|| run::traces(place, seed, wanted))
            .map_err(|error| broken(&error))?;
        let tables = PyDict::new(py);
        tables.set_item("window", columns(py, &traces.window)?)?;
        tables.set_item("path", columns(py, &traces.path)?)?;
        tables.set_item("queue", columns(py, &traces.queue)?)?;
        tables.set_item("sequence", columns(py, &traces.sequence)?)?;
        tables.set_item("air", columns(py, &traces.air)?)?;
        Ok((PyBytes::new(py, &line(point, &result)), tables))
    }
}

impl Scenario {
    fn point(&self, index: usize) -> PyResult<&restp_lab::scenario::Point> {
        let points = self.0.points();
        points.get(index).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "there is no point {index}; this scenario has {}",
                points.len()
            ))
        })
    }
}

fn medium(spec: &MediumSpec) -> Value {
    let stations = spec.stations.iter().map(|station| {
        let waypoint = |(at, place): &(Time, Place)| {
            let seconds = at.since(Time::ZERO).as_secs_f64();
            json!([seconds, place.x, place.y])
        };
        json!({
            "node": station.node,
            "at_m": [station.place.x, station.place.y],
            "waypoints": station.waypoints.iter().map(waypoint).collect::<Vec<Value>>(),
        })
    });
    let links = spec
        .pairs()
        .into_iter()
        .map(|pair| json!(pair.stations.map(|station| &spec.stations[station].node)));
    json!({
        "name": spec.name,
        "decode_m": spec.ranges.decode,
        "sense_m": spec.ranges.sense,
        "interfere_m": spec.ranges.interfere,
        "capture": spec.capture,
        "stations": stations.collect::<Vec<Value>>(),
        "links": links.collect::<Vec<Value>>(),
    })
}

/// A result as a line of JSON, without what does not follow from the seed.
fn line(point: usize, result: &RunResult) -> Vec<u8> {
    let RunResult {
        scenario: _,
        point: _,
        seed,
        sim_seconds,
        wall_seconds: _,
        events,
        packets,
        flows,
        groups,
        hosts,
        links,
    } = result;
    let value = json!({
        "point": point, "seed": seed, "sim_seconds": sim_seconds, "events": events, "packets": packets,
        "flows": flows, "groups": groups, "hosts": hosts, "links": links,
    });
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, column) in &table.columns {
        let (kind, bytes, words) = match column {
            Column::Integer(values) => ("integer", bytes_of(values, i64::to_ne_bytes), &[][..]),
            Column::Float(values) => ("float", bytes_of(values, f64::to_ne_bytes), &[][..]),
            Column::Word(codes, words) => ("word", bytes_of(codes, i32::to_ne_bytes), &words[..]),
        };
        columns.set_item(name, (kind, PyBytes::new(py, &bytes), words))?;
    }
    Ok(columns)
}

fn bytes_of<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes(*value)).collect()
}

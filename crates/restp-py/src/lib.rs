//! The lab and the endpoint for Python: conversions only. Frames, sweeps and figures are Python, in `python/restp`.

mod connection;
mod endpoint;
mod errors;
mod scenario;
mod stream;

use pyo3::prelude::*;
use restp_lab::metrics::Interval;

/// What `restp._restp` holds; `python/restp/_restp.pyi` says the same to type checkers, and a test compares them.
#[pymodule]
fn _restp(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<scenario::Scenario>()?;
    module.add_function(wrap_pyfunction!(interval, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    errors::add(module)
}

/// Mean of these values and the 95 % interval of Student's t, `(mean, low, high)`; with one value the mean thrice, and
/// None without any.
#[pyfunction]
fn interval(values: Vec<f64>) -> Option<(f64, f64, f64)> {
    let Interval { mean, low, high, .. } = Interval::of(&values)?;
    Some((mean, low.unwrap_or(mean), high.unwrap_or(mean)))
}

/// Runs the command `restp` with these words, its name first, and returns its exit code.
#[pyfunction]
fn command(python: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    python.detach(|| restp_cli::run(words))
}

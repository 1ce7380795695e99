//! What went wrong, as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use restp_lab::scenario::Place;
use restp_lab::{RunError as Breakdown, ScenarioError as Refusal};

create_exception!(
    restp,
    ScenarioError,
    PyValueError,
    "A scenario, a change or a grid was refused. `key` is what is wrong, `line` where it is written (None for a change), \
     `file` the scenario file (None for text); the message says what may stand there."
);
create_exception!(
    restp,
    RunError,
    PyRuntimeError,
    "A simulation could not go on; the message says which one, and why."
);

create_exception!(
    restp,
    ConnectionLost,
    PyConnectionError,
    "A connection was not opened, or ended otherwise than in good order; the message says why."
);

/// The exception for a connection that is not, or no longer.
pub fn closed(why: &str) -> PyErr {
    ConnectionLost::new_err(why.to_owned())
}

/// The exception for an address, a key or a composition that cannot be.
pub fn impossible(why: impl ToString) -> PyErr {
    PyValueError::new_err(why.to_string())
}

/// The exception for a scenario that was refused.
pub fn refused(py: Python<'_>, error: &Refusal) -> PyErr {
    let exception = ScenarioError::new_err(error.to_string());
    let (line, key) = match &error.place {
        Place::File => (None, ""),
        Place::Line(line) => (Some(*line), ""),
        Place::Setting(setting) => (None, setting.split('=').next().unwrap_or_default()),
    };
    // A key that does not exist is in no document, but whoever set it wrote it.
    let key = if error.key.is_empty() { key } else { &error.key };
    let value = exception.value(py);
    let noted = value
        .setattr("key", key)
        .and_then(|()| value.setattr("line", line))
        .and_then(|()| value.setattr("file", error.file.as_ref()));
    noted.err().unwrap_or(exception)
}

/// The exception for a run that broke off.
pub fn broken(error: &Breakdown) -> PyErr {
    RunError::new_err(error.to_string())
}

/// Puts them into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ConnectionLost", py.get_type::<ConnectionLost>())?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("RunError", py.get_type::<RunError>())
}

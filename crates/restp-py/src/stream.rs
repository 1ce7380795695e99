//! One stream of a connection that carries many, for asyncio.

use crate::errors::closed;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_async_runtimes::tokio::future_into_py;
use std::sync::Arc;

/// One stream; one task may send while another receives. Dropped without `finish` it is broken off.
#[pyclass(frozen, module = "restp._restp")]
pub struct Stream(Arc<restp::BiStream>);

#[pymethods]
impl Stream {
    /// Its number within the connection.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id().0
    }

    /// Sends the next bytes, and waits while there is no room. Bytes that were taken are sent on when the wait is cancelled; bytes
    /// that were not are not sent at all.
    fn send<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let (stream, data) = (self.0.clone(), data.to_vec());
        future_into_py(py, async move {
            let sent = stream.send(data.into()).await;
            sent.map_err(|error| closed(&error.to_string()))
        })
    }

    /// Waits for the next bytes. None: the peer has finished, and everything was read.
    fn recv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stream = self.0.clone();
        future_into_py(py, async move {
            let read = stream.recv().await.map_err(|error| closed(&error.to_string()))?;
            Ok(read.map(|data| Python::attach(|py| PyBytes::new(py, &data).unbind())))
        })
    }

    /// No more sends will come: everything sent before is delivered, then the peer reads the end.
    fn finish(&self) {
        self.0.finish();
    }

    /// Breaks off the direction to the peer, which is told the code.
    fn reset(&self, code: u32) {
        self.0.reset(code);
    }

    /// Nothing is read any more: the peer is asked to break its direction off.
    fn stop(&self, code: u32) {
        self.0.stop(code);
    }
}

impl Stream {
    pub fn new(stream: restp::BiStream) -> Self {
        Stream(Arc::new(stream))
    }
}

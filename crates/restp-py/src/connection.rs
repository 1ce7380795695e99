//! One connection for asyncio.

use crate::errors::{closed, impossible};
use crate::stream::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_async_runtimes::tokio::future_into_py;
use restp::{Change, ChangeError, CloseReason, PathAddress, PathState, PathStats, SendError};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// What a connection says that carries none.
const NO_STREAMS: &str =
    "the connection carries no streams; choose framing = \"streams\" and ordering = \"unordered\"";

/// One connection; one task may send while another receives. Dropped without `finish` or `close` it is broken off.
#[pyclass(frozen, module = "restp._restp")]
pub struct Connection(Arc<restp::Connection>);

#[pymethods]
impl Connection {
    /// Sends one message, or the next bytes of a stream, and waits while there is no room. Data that was taken is sent on
    /// when the wait is cancelled; data that was not is not sent at all.
    fn send<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let (connection, data) = (self.0.clone(), data.to_vec());
        future_into_py(
            py,
            async move { connection.send(data.into()).await.map_err(unsent) },
        )
    }

    /// The same, on the path between two addresses as `path_event` and `paths` name them. While it does not answer another
    /// path carries the data.
    fn send_on<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        local: &str,
        remote: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let path = PathAddress {
            local: address(local)?,
            remote: address(remote)?,
        };
        let (connection, data) = (self.0.clone(), data.to_vec());
        future_into_py(py, async move {
            connection.send_on(data.into(), path).await.map_err(unsent)
        })
    }

    /// The paths it has, each by its local and its remote address; empty where it can have one only.
    fn paths(&self) -> Vec<(String, String)> {
        let name = |path: &PathStats| (path.path.local.to_string(), path.path.remote.to_string());
        self.0.stats().paths.iter().map(name).collect()
    }

    /// Waits for the next message, or bytes of a stream. None: the peer has finished, and everything was read.
    fn recv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.0.clone();
        future_into_py(py, async move { received(&connection).await })
    }

    /// Opens a stream of its own within the connection, and waits while the peer takes no more.
    fn open_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.0.carries_streams() {
            return Err(impossible(NO_STREAMS));
        }
        let connection = self.0.clone();
        future_into_py(py, async move {
            let opened = connection.open_stream().await;
            opened
                .map(Stream::new)
                .map_err(|error| closed(&error.to_string()))
        })
    }

    /// Waits for the next stream that the peer opens. None: the peer has finished and opens no more, or the connection is over.
    fn accept_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.0.carries_streams() {
            return Err(impossible(NO_STREAMS));
        }
        let connection = self.0.clone();
        future_into_py(py, async move {
            Ok(connection.accept_stream().await.map(Stream::new))
        })
    }

    /// Changes services while it runs. "nothing": they are as asked; "local": this end has changed them; "agreed": the peer was
    /// asked, and `changes` tells what became of it.
    fn reconfigure(&self, set: Vec<(String, String)>) -> PyResult<&'static str> {
        let pairs = set.iter().map(|(key, value)| (&**key, &**value));
        match self.0.reconfigure(pairs) {
            Ok(Change::Nothing) => Ok("nothing"),
            Ok(Change::Local) => Ok("local"),
            Ok(Change::Agreed) => Ok("agreed"),
            Err(error @ ChangeError::NotRunning) => Err(closed(&error.to_string())),
            Err(error) => Err(impossible(error)),
        }
    }

    /// How services changed since the last call: (key, from, to, why).
    fn changes(&self) -> Vec<(&'static str, String, String, &'static str)> {
        let told = self.0.take_changes().into_iter();
        told.map(|change| (change.key, change.from, change.to, change.why.name()))
            .collect()
    }

    /// No more sends will come: everything sent before is delivered, then the peer reads the end.
    fn finish(&self) {
        self.0.finish();
    }

    /// Breaks the connection off at once and tells the peer.
    fn abort(&self) {
        self.0.abort();
    }

    /// Ends the connection in good order: finishes, drops what the peer still sends, and waits for the end.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.0.clone();
        future_into_py(py, async move {
            connection.finish();
            while connection.recv().await.is_some() {}
            match connection.closed().await {
                CloseReason::Finished => Ok(()),
                reason => Err(closed(&reason.to_string())),
            }
        })
    }

    /// The public key of the peer; None without a seal.
    #[getter]
    fn peer_key(&self) -> Option<String> {
        self.0.peer_key().map(|key| key.to_string())
    }

    /// Waits for the next news of a path: (local, remote, state); None when the connection is over.
    fn path_event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let connection = self.0.clone();
        future_into_py(py, async move {
            let news = connection.path_event().await;
            Ok(news.map(|news| {
                let state = match news.state {
                    PathState::Up => "up",
                    PathState::Suspect => "suspect",
                    PathState::Down => "down",
                    PathState::Closed => "closed",
                };
                (news.path.local.to_string(), news.path.remote.to_string(), state)
            }))
        })
    }

    /// Counters and estimates.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.0.stats();
        let all = PyDict::new(py);
        let seconds = |span: restp_base::time::Duration| span.as_secs_f64();
        all.set_item("handshake_s", stats.handshake.map(seconds))?;
        all.set_item("srtt_s", stats.srtt.map(seconds))?;
        all.set_item("rto_s", stats.rto.map(seconds))?;
        all.set_item("congestion_window_bytes", stats.congestion_window_bytes)?;
        all.set_item("sent_packets", stats.sent_packets)?;
        all.set_item("sent_bytes", stats.sent_bytes)?;
        all.set_item("received_bytes", stats.received_bytes)?;
        all.set_item("delivered_bytes", stats.delivered_bytes)?;
        all.set_item("retransmitted_packets", stats.retransmitted_packets)?;
        all.set_item("lost_packets", stats.lost_packets)?;
        all.set_item("timeouts", stats.timeouts)?;
        Ok(all)
    }
}

impl Connection {
    pub fn new(connection: restp::Connection) -> Self {
        Connection(Arc::new(connection))
    }
}

fn unsent(error: SendError) -> PyErr {
    match error {
        SendError::Rejected(_) | SendError::NotBound(_) => PyValueError::new_err(error.to_string()),
        SendError::Closed(_) => closed(&error.to_string()),
    }
}

fn address(written: &str) -> PyResult<SocketAddr> {
    written.parse().map_err(|_| {
        PyValueError::new_err(format!(
            "\"{written}\" is no address of a path; write it as path_event does, such as 192.0.2.7:4000"
        ))
    })
}

/// The next data; None at the end in good order, an exception at any other.
async fn received(connection: &restp::Connection) -> PyResult<Option<Py<PyBytes>>> {
    let Some(data) = connection.recv().await else {
        let mut end = pin!(connection.closed());
        let reason = poll_fn(|cx| match end.as_mut().poll(cx) {
            Poll::Ready(reason) => Poll::Ready(Some(reason)),
            // The peer has finished; this side may still send.
            Poll::Pending => Poll::Ready(None),
        });
        return match reason.await {
            None | Some(CloseReason::Finished) => Ok(None),
            Some(reason) => Err(closed(&reason.to_string())),
        };
    };
    Ok(Some(Python::attach(|py| PyBytes::new(py, &data).unbind())))
}

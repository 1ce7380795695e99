//! Traces of connections as qlog, one JSON-SEQ file (RFC 7464) per end: draft-ietf-quic-qlog-main-schema-13 with the
//! events of draft-ietf-quic-qlog-quic-events-12, or version 0.3, the newest that qvis opens.
//!
//! ```text
//! driver ─► Observer (restp-base) ─► trace.rs: what is worth an event ─► record.rs: one line per event ─► file
//! ```

mod record;
mod trace;

pub use record::Schema;

use crate::failure::Failure;
use record::Vantage;
use restp_base::observe::{Observer, Seen};
use restp_base::time::Time;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trace::Trace;

/// A folder for traces. What goes wrong while they are written is kept until [`Folder::finish`].
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    schema: Schema,
    fault: Arc<Mutex<Option<String>>>,
}

impl Folder {
    /// The folder asked for, made if need be; none when none was.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn of(folder: Option<&Path>, schema: Schema) -> Result<Option<Folder>, Failure> {
        let Some(path) = folder else {
            return Ok(None);
        };
        std::fs::create_dir_all(path).map_err(|error| Failure::input(complaint(path, &error)))?;
        Ok(Some(Folder {
            path: path.to_owned(),
            schema,
            fault: Arc::default(),
        }))
    }

    /// Who writes the trace `name` of the end that opened the connection, or of the other one. None when the file cannot
    /// be made: [`Folder::finish`] says so.
    pub fn observer(&self, name: &str, opens: bool) -> Option<Observer> {
        let vantage = if opens { Vantage::Client } else { Vantage::Server };
        let path = self.path.join(format!("{name}.{}.sqlog", vantage.word()));
        let opened = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            record::header(&mut file, self.schema, name, vantage)?;
            Ok(file)
        });
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                note(&self.fault, &path, &error);
                return None;
            }
        };
        let mut sink = Sink {
            trace: Trace::new(file, self.schema),
            path,
            fault: self.fault.clone(),
            broken: false,
        };
        Some(Box::new(move |now, seen| sink.see(now, seen)))
    }

    /// The first thing that went wrong. The traces are complete once their observers are gone.
    ///
    /// # Errors
    /// When something did.
    pub fn finish(&self) -> Result<(), Failure> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        fault.map_or(Ok(()), |fault| Err(Failure::operation(fault)))
    }
}

/// One trace on its way to its file.
struct Sink {
    trace: Trace<BufWriter<File>>,
    path: PathBuf,
    fault: Arc<Mutex<Option<String>>>,
    /// Nothing more is written once something failed.
    broken: bool,
}

impl Sink {
    fn see(&mut self, now: Time, seen: Seen<'_>) {
        if !self.broken
            && let Err(error) = self.trace.see(now, seen)
        {
            self.broken = true;
            note(&self.fault, &self.path, &error);
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if !self.broken
            && let Err(error) = self.trace.flush()
        {
            note(&self.fault, &self.path, &error);
        }
    }
}

fn note(fault: &Mutex<Option<String>>, path: &Path, error: &io::Error) {
    let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
    fault.get_or_insert_with(|| complaint(path, error));
}

fn complaint(path: &Path, error: &io::Error) -> String {
    format!(
        "{}: the trace cannot be written ({error}); name another folder with --qlog, or make room",
        path.display()
    )
}

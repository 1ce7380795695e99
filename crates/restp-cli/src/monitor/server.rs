//! A line of JSON in each second for everybody who is connected to this command's socket.

use super::PAUSE;
use super::snapshot::Observed;
use super::sockets;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Between two looks.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Who does not read for so long is not told any more.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// Readers at once; further ones are turned away.
const MAX_READERS: usize = 8;

/// Opens this process's socket.
///
/// # Errors
/// When there is no folder for it that is this user's alone.
pub fn bind() -> io::Result<(PathBuf, UnixListener)> {
    let folder = sockets::folder();
    sockets::make(&folder)?;
    let path = sockets::socket_of(&folder, std::process::id());
    // Who finds a socket that does not listen yet takes its process for one that was killed, and removes it.
    let unready = path.with_extension("new");
    // A process that had this number before was killed.
    match std::fs::remove_file(&unready) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&unready)?;
    std::fs::rename(&unready, &path)?;
    Ok((path, listener))
}

/// Until the task is dropped.
pub async fn serve(listener: UnixListener, observed: Arc<Observed>) {
    // Of processes that were killed. Nobody else may ever look for them, and they would hide the others.
    for socket in sockets::sockets(&sockets::folder()) {
        let _ = sockets::connect(&socket).await;
    }
    let mut readers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if readers.len() < MAX_READERS => {
                    readers.spawn(tell(stream, observed.clone()));
                }
                Ok(_) => {}
                // The system has no room for one more: it may have in a moment.
                Err(_) => sleep(PAUSE).await,
            },
            Some(_) = readers.join_next(), if !readers.is_empty() => {}
        }
    }
}

async fn tell(mut stream: UnixStream, observed: Arc<Observed>) {
    let mut looks = interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(snapshot) = observed.look() else { return };
        let Ok(mut line) = serde_json::to_vec(&snapshot) else {
            return;
        };
        line.push(b'\n');
        if !matches!(timeout(READS_WITHIN, stream.write_all(&line)).await, Ok(Ok(()))) {
            return;
        }
    }
}

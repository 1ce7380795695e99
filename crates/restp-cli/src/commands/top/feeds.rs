//! What running commands tell, and how it has changed since they told it last.

use super::INTERVAL;
use super::table::{self, Row};
use crate::failure::Failure;
use crate::monitor::snapshot::{Connection, Snapshot};
use crate::monitor::sockets;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Of one line: some thousand connections.
const MAX_LINE: u64 = 4 << 20;

/// Where they are told.
enum From {
    Folder(PathBuf),
    Socket(PathBuf),
}

/// All commands that are heard.
pub struct Feeds {
    from: From,
    heard: BTreeMap<PathBuf, Told>,
    /// Those that a task reads.
    read: BTreeSet<PathBuf>,
    sender: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
}

/// The last two things that a command told, and of each connection the first.
struct Told {
    first: BTreeMap<u64, Connection>,
    before: Option<Snapshot>,
    latest: Snapshot,
}

/// A snapshot, or the end, of the command behind a socket.
type News = (PathBuf, Option<Box<Snapshot>>);

impl Feeds {
    /// Of every command with a socket in `folder`.
    pub fn of_folder(folder: PathBuf) -> Self {
        Self::new(From::Folder(folder))
    }

    /// Of the one behind `socket`.
    pub fn of_socket(socket: PathBuf) -> Self {
        Self::new(From::Socket(socket))
    }

    fn new(from: From) -> Self {
        let (sender, news) = mpsc::channel(64);
        Feeds {
            from,
            heard: BTreeMap::new(),
            read: BTreeSet::new(),
            sender,
            news,
        }
    }

    /// Begins to listen to commands that have come since.
    pub fn look_for_more(&mut self) {
        let sockets = match &self.from {
            From::Folder(folder) => sockets::sockets(folder),
            From::Socket(socket) => vec![socket.clone()],
        };
        for socket in sockets {
            if self.read.insert(socket.clone()) {
                tokio::spawn(listen(socket, self.sender.clone()));
            }
        }
    }

    /// The next snapshot of whichever command; `None` when a command has ended.
    pub async fn next(&mut self) -> Option<Snapshot> {
        let (socket, told) = self.news.recv().await?;
        let Some(snapshot) = told else {
            self.read.remove(&socket);
            self.heard.remove(&socket);
            return None;
        };
        let latest = (*snapshot).clone();
        let told = self.heard.remove(&socket);
        let (known, before) = told.map_or_else(Default::default, |told| (told.first, Some(told.latest)));
        let of_now = latest.connections.iter().map(|connection| {
            let first = known.get(&connection.id).unwrap_or(connection);
            (connection.id, first.clone())
        });
        let first = of_now.collect();
        self.heard.insert(
            socket,
            Told {
                first,
                before,
                latest,
            },
        );
        Some(*snapshot)
    }

    /// Hands over what comes, and looks for new commands, until it is dropped or `each` fails.
    pub async fn follow(&mut self, each: impl Fn(Snapshot) -> Result<(), Failure>) -> Failure {
        let mut looks = tokio::time::interval(INTERVAL);
        loop {
            tokio::select! {
                snapshot = self.next() => if let Some(Err(failure)) = snapshot.map(&each) {
                    return failure;
                },
                _ = looks.tick() => self.look_for_more(),
            }
        }
    }

    /// What each command told last, in the order of their sockets.
    pub fn latest(&self) -> impl Iterator<Item = &Snapshot> {
        self.heard.values().map(|told| &told.latest)
    }

    /// The table of all.
    pub fn rows(&self) -> Vec<Row> {
        let told = self.heard.values();
        told.flat_map(|told| table::rows(&told.first, told.before.as_ref(), &told.latest))
            .collect()
    }
}

async fn listen(socket: PathBuf, sender: mpsc::Sender<News>) {
    if let Ok(stream) = sockets::connect(&socket).await {
        read(stream, &socket, &sender).await;
    }
    let _ = sender.send((socket, None)).await;
}

async fn read(stream: UnixStream, socket: &Path, sender: &mpsc::Sender<News>) {
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        match (&mut lines).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(1..) if line.ends_with(b"\n") => {}
            _ => return,
        }
        // Another version may tell something else.
        let Ok(snapshot) = serde_json::from_slice(&line) else {
            return;
        };
        if sender
            .send((socket.to_owned(), Some(Box::new(snapshot))))
            .await
            .is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use tokio::time::{sleep, timeout};

    /// The table says what has changed since then.
    #[tokio::test]
    async fn of_each_connection_the_first_look_is_kept() {
        let mut feeds = Feeds::of_folder("/".into());
        let told = |congestion: &str| {
            let connection = Connection {
                id: 5,
                composition: [("congestion".to_owned(), congestion.to_owned())].into(),
                ..Connection::default()
            };
            Box::new(Snapshot {
                command: "send".into(),
                pid: 1,
                seconds: 0.0,
                forged_datagrams: 0,
                connections: vec![connection],
            })
        };
        for congestion in ["cubic", "bbr", "reno"] {
            let news = ("1.sock".into(), Some(told(congestion)));
            feeds.sender.send(news).await.unwrap();
            feeds.next().await.unwrap();
        }
        let kept = &feeds.heard[Path::new("1.sock")];
        assert_eq!(kept.first[&5].composition["congestion"], "cubic");
        assert_eq!(kept.latest.connections[0].composition["congestion"], "reno");
    }

    /// They tell more often than it looks for others.
    #[tokio::test(start_paused = true)]
    async fn commands_that_start_later_are_found_while_others_tell() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let mut feeds = Feeds::of_folder(folder.path().into());
        let sender = feeds.sender.clone();
        tokio::spawn(async move {
            loop {
                let snapshot = Snapshot {
                    command: "recv".into(),
                    pid: 1,
                    seconds: 0.0,
                    forged_datagrams: 0,
                    connections: Vec::new(),
                };
                sender
                    .send(("1.sock".into(), Some(Box::new(snapshot))))
                    .await
                    .unwrap();
                sleep(INTERVAL / 2).await;
            }
        });
        let later = folder.path().join("2.sock");
        let begun = std::cell::OnceCell::new();
        let each = |_| {
            begun.get_or_init(|| UnixListener::bind(&later).unwrap());
            Ok(())
        };
        assert!(timeout(INTERVAL * 10, feeds.follow(each)).await.is_err());
        assert!(feeds.read.contains(&later));
    }
}

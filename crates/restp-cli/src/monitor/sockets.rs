//! Where the sockets of this user's commands are: `restp/PID.sock` below `RUNTIME_DIRECTORY` (which systemd gives a service),
//! `XDG_RUNTIME_DIR`, or in a folder of this user's own in the one for temporary files. Nobody else may look.

use nix::unistd::Uid;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// Sockets listed at most.
const MAX_SOCKETS: usize = 256;

const ENDING: &str = "sock";

/// The folder, as the environment says.
pub fn folder() -> PathBuf {
    let named = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"]
        .into_iter()
        .find_map(|variable| {
            let path = PathBuf::from(std::env::var_os(variable)?);
            path.is_absolute().then(|| path.join("restp"))
        });
    named.unwrap_or_else(|| std::env::temp_dir().join(format!("restp-{}", Uid::effective())))
}

/// Makes the folder, if it is not there, and sees that it is this user's alone.
///
/// # Errors
/// When it cannot be made, or others can put something into it.
pub fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if is_own(folder)? {
        Ok(())
    } else {
        Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!("{} is not a folder for this user alone", folder.display()),
        ))
    }
}

/// Is it a folder into which nobody else can put anything?
fn is_own(folder: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(folder)?;
    Ok(found.is_dir() && found.uid() == Uid::effective().as_raw() && found.mode() & 0o077 == 0)
}

/// The socket of the process `pid`.
pub fn socket_of(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.{ENDING}"))
}

/// All sockets in the folder, in the order of their names; none where there is no folder, or another one's: what is told there is
/// shown as this user's.
pub fn sockets(folder: &Path) -> Vec<PathBuf> {
    if !is_own(folder).unwrap_or(false) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut sockets: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .take(MAX_SOCKETS)
        .collect();
    sockets.sort();
    sockets
}

/// Connects to a socket, or removes it: nobody answers at that of a process that was killed.
///
/// # Errors
/// When there is nobody, or he has no room.
pub async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let connected = UnixStream::connect(socket).await;
    if matches!(&connected, Err(error) if error.kind() == ErrorKind::ConnectionRefused) {
        let _ = fs::remove_file(socket); // who looks next tries again
    }
    connected
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_others_can_enter_is_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        let ours = scratch.path().join("restp");
        make(&ours).unwrap();
        make(&ours).unwrap();
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(make(&ours).unwrap_err().kind(), ErrorKind::PermissionDenied);
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o700)).unwrap();
        let link = scratch.path().join("link");
        symlink(&ours, &link).unwrap();
        assert!(make(&link).is_err(), "who made the link decides where it leads");
        let nowhere = scratch.path().join("gone/restp");
        assert!(make(&nowhere).is_err() && !scratch.path().join("gone").exists());
    }

    #[test]
    fn only_sockets_are_listed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("restp");
        make(&folder).unwrap();
        for name in ["12.sock", "7.sock", "notes.txt"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let expected = ["12.sock", "7.sock"].map(|name| folder.join(name));
        assert_eq!(sockets(&folder), expected);
        assert!(sockets(&folder.join("missing")).is_empty());
    }

    #[test]
    fn sockets_that_others_may_have_put_there_are_not_listed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("restp");
        make(&folder).unwrap();
        fs::write(folder.join("7.sock"), "").unwrap();
        assert_eq!(sockets(&folder).len(), 1);
        let link = scratch.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(sockets(&link).is_empty());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(sockets(&folder).is_empty());
    }

    #[tokio::test]
    async fn the_socket_of_a_process_that_was_killed_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let sockets = ["1.sock", "2.sock"].map(|name| scratch.path().join(name));
        let [_lives, killed] = sockets
            .each_ref()
            .map(|socket| tokio::net::UnixListener::bind(socket).unwrap());
        drop(killed);
        assert!(connect(&sockets[0]).await.is_ok() && connect(&sockets[1]).await.is_err());
        assert_eq!(sockets.each_ref().map(|socket| socket.exists()), [true, false]);
    }
}

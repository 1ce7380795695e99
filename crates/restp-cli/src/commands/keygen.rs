//! `restp keygen`: a host's name that lasts.

use crate::args::Keygen;
use crate::failure::Failure;
use crate::keys;
use crate::output::Output;
use serde::Serialize;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct Key {
    key: String,
    file: PathBuf,
}

/// Writes a secret key and prints its public one.
///
/// # Errors
/// Exit code 2 when the file exists or cannot be written.
pub fn execute(arguments: &Keygen, output: Output) -> Result<(), Failure> {
    let file = arguments.file.clone().or_else(|| restp::files::of_user("key"));
    let Some(file) = file else {
        return Err(Failure::input(
            "neither XDG_DATA_HOME nor HOME says where to keep a key; name a file",
        ));
    };
    let secret = if arguments.show {
        keys::load(&file)?
    } else {
        keys::create(&file).map_err(|error| refusal(&file, &error))?
    };
    let key = Key {
        key: secret.public().to_string(),
        file,
    };
    output.result(&key, |key| format!("key: {}", key.key))
}

/// Why no key was written to `file`, and what to do instead.
fn refusal(file: &Path, error: &io::Error) -> Failure {
    let name = file.display();
    if error.kind() != ErrorKind::AlreadyExists {
        return Failure::input(format!(
            "{name}: {error}; name a file in a folder that you may write to"
        ));
    }
    if file.is_dir() {
        return Failure::input(format!("{name} is a directory; name a file in it"));
    }
    if !file.exists() {
        return Failure::input(format!(
            "{name} is a link to nothing; remove it first, or name another file"
        ));
    }
    match keys::load(file) {
        Ok(_) => Failure::input(format!(
            "{name} exists and stays as it is; `restp keygen --show {name}` prints its public key, or name another file"
        )),
        Err(failure) => Failure::input(format!("nothing was written: {}", failure.message())),
    }
}

//! `restp completions` and `restp man`: what packages install beside the command, out of the arguments themselves.

use crate::args::{Arguments, Completions, Man};
use crate::failure::Failure;
use crate::output::Output;
use clap::CommandFactory;

const NAME: &str = "restp";

/// Prints the completions of one shell: a script, with `--json` as well.
///
/// # Errors
/// When standard output is closed.
pub fn complete(arguments: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), NAME, &mut script);
    Output { json: false }.text(String::from_utf8_lossy(&script).trim_end())
}

/// Writes one page per command.
///
/// # Errors
/// Exit code 2 when the folder cannot be written.
pub fn execute(arguments: &Man) -> Result<(), Failure> {
    let unwritable = |error| {
        Failure::input(format!(
            "{}: {error}; name another folder",
            arguments.dir.display()
        ))
    };
    std::fs::create_dir_all(&arguments.dir).map_err(unwritable)?;
    clap_mangen::generate_to(Arguments::command(), &arguments.dir).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let dir = tempfile::tempdir().expect("a folder");
        let pages = dir.path().join("man1");
        execute(&Man { dir: pages.clone() }).expect("pages");
        for command in Arguments::command().get_subcommands() {
            let page = std::fs::read_to_string(pages.join(format!("restp-{}.1", command.get_name())));
            let about = command.get_about().expect("a sentence").to_string();
            let first = about.split('-').next().unwrap_or_default();
            assert!(page.expect("a page").contains(first), "{}", command.get_name());
        }
    }
}

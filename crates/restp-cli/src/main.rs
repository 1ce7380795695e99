//! The `restp` command.

fn main() -> std::process::ExitCode {
    restp_cli::run(std::env::args_os()).into()
}

//! `restp emulate`: network paths between UDP ports or namespaces.

use super::run;
use crate::args::Emulate;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use restp::emulator::{Answer, Attachment, Control, Emulator, EmulatorError, PathPorts};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

/// Runs until interrupted, then prints counters.
///
/// # Errors
/// Exit code 2 when the file is no network, 1 when the system refuses it.
pub fn execute(arguments: &Emulate, output: Output) -> Result<(), Failure> {
    let attachment = if arguments.tun {
        Attachment::Tun
    } else {
        Attachment::Udp
    };
    let emulator = Emulator::from_file(&arguments.net, attachment).map_err(|error| match &error {
        EmulatorError::Config(_) | EmulatorError::Unattached { .. } => Failure::input(error),
        EmulatorError::System { .. } => Failure::operation(error),
    })?;
    let report = run(async {
        let mut interrupt = Interrupt::watch()?;
        let ready = Ready {
            ready: emulator.ports().to_vec(),
        };
        output.result(&ready, Ready::describe)?;
        let control = emulator.control();
        let end = async {
            tokio::select! {
                () = interrupt.wait() => {}
                () = commands(control, output), if arguments.control => {}
            }
        };
        Ok(emulator.run(end).await)
    })?;
    output.result(&report, ToString::to_string)
}

/// What is printed once datagrams are taken.
#[derive(Serialize)]
struct Ready {
    ready: Vec<PathPorts>,
}

impl Ready {
    fn describe(&self) -> String {
        let lines = self.ready.iter().map(|path| {
            let name = &path.path;
            match (path.listen, path.to, &path.devices) {
                (Some(listen), Some(to), _) => format!("ready: {name} {listen} -> {to}"),
                (_, _, Some([from, to])) => format!("ready: {name} {from} - {to}"),
                _ => format!("ready: {name}"),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Carries out what is typed until there is no more.
async fn commands(control: Control, output: Output) {
    crate::stdin::is_read_from_now();
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.trim().is_empty() {
            continue;
        }
        match control.execute(&line) {
            // The counters come at the end.
            Ok(Answer::Stats(_)) if line.trim() == "quit" => return,
            Ok(Answer::Done(at)) => output::note(format!("{line}: done at {at:.3} s")),
            Ok(Answer::Stats(report)) => {
                if output.result(&report, ToString::to_string).is_err() {
                    return;
                }
            }
            Err(error) => output::note(format!("error: {error}")),
        }
    }
}

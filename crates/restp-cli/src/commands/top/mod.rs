//! `restp top`: the connections of all commands that run, once a second.

mod feeds;
mod screen;
mod table;

use crate::args::Top;
use crate::commands::run;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::monitor::sockets;
use crate::output::Output;
use feeds::Feeds;
use std::io::IsTerminal;
use std::time::Duration;

/// Between two looks, as commands tell.
const INTERVAL: Duration = Duration::from_secs(1);

/// Every command has told twice by then, so that there are rates.
const TWICE: Duration = Duration::from_millis(2200);

/// Shows them until the user ends it, or once.
///
/// # Errors
/// Exit code 1 when there is nothing to see once, or the terminal fails; 2 when what is named is no process of this user.
pub fn execute(arguments: &Top, output: Output) -> Result<(), Failure> {
    let mut feeds = match &arguments.from {
        None => Feeds::of_folder(sockets::folder()),
        Some(word) => Feeds::of_socket(socket(word)?),
    };
    let once = arguments.once || !output.json && !std::io::stdout().is_terminal();
    run(async {
        let mut interrupt = Interrupt::watch()?;
        feeds.look_for_more();
        let work = async {
            if once {
                tokio::time::timeout(TWICE, feeds.follow(|_| Ok(()))).await.ok();
                return print(&feeds, output);
            }
            if output.json {
                let each = |snapshot| output.result(&snapshot, |_| String::new());
                return Err(feeds.follow(each).await);
            }
            screen::show(&mut feeds).await
        };
        tokio::select! {
            result = work => result,
            () = interrupt.wait() => Ok(()),
        }
    })
}

/// The socket of a process by its number, or the one that is named.
fn socket(word: &str) -> Result<std::path::PathBuf, Failure> {
    let path = match word.parse::<u32>() {
        Ok(pid) => sockets::socket_of(&sockets::folder(), pid),
        Err(_) => word.into(),
    };
    if path.exists() {
        return Ok(path);
    }
    Err(Failure::input(format!(
        "{word}: there is no socket {}; `restp top` alone shows every command that this user runs",
        path.display()
    )))
}

/// Everything, now.
fn print(feeds: &Feeds, output: Output) -> Result<(), Failure> {
    if output.json {
        return feeds
            .latest()
            .try_for_each(|snapshot| output.result(snapshot, |_| String::new()));
    }
    output.text(&table::text(&feeds.rows()))
}

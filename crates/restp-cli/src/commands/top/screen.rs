//! The table on a terminal, until a key ends it.

use super::INTERVAL;
use super::feeds::Feeds;
use super::table::{self, HEAD, Row};
use crate::failure::Failure;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row as Drawn, Table, TableState};
use std::time::Duration;
use tokio::sync::mpsc;

/// Between two looks at the keyboard.
const KEYS: Duration = Duration::from_millis(100);

/// Between two columns.
const SPACING: u16 = 2;

/// What a key asks for.
enum Wish {
    End,
    Down,
    Up,
    Redraw,
}

/// Draws once a second.
///
/// # Errors
/// When the terminal fails.
pub async fn show(feeds: &mut Feeds) -> Result<(), Failure> {
    let failed = |error| Failure::operation(format!("the terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let _restored = Restored;
    let mut wishes = keyboard();
    let mut state = TableState::default();
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        let rows = feeds.rows();
        terminal
            .draw(|frame| draw(frame, &rows, &mut state))
            .map_err(failed)?;
        tokio::select! {
            _ = feeds.next() => {}
            _ = ticks.tick() => feeds.look_for_more(),
            wish = wishes.recv() => match wish {
                None | Some(Wish::End) => return Ok(()),
                Some(Wish::Down) => state.scroll_down_by(1),
                Some(Wish::Up) => state.scroll_up_by(1),
                Some(Wish::Redraw) => {}
            },
        }
    }
}

/// Gives the terminal back, however the command ends.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Keys from a thread of their own: reading them blocks.
fn keyboard() -> mpsc::Receiver<Wish> {
    let (sender, wishes) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEYS) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(_) => return,
            }
            let wish = match event::read() {
                Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::End,
                    KeyCode::Char('q') | KeyCode::Esc => Wish::End,
                    KeyCode::Down | KeyCode::Char('j') => Wish::Down,
                    KeyCode::Up | KeyCode::Char('k') => Wish::Up,
                    _ => continue,
                },
                Ok(Event::Resize(..)) => Wish::Redraw,
                Ok(_) => continue,
                Err(_) => return,
            };
            if sender.blocking_send(wish).is_err() {
                return;
            }
        }
    });
    wishes
}

fn draw(frame: &mut Frame<'_>, rows: &[Row], state: &mut TableState) {
    let [above, below] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    if rows.is_empty() {
        frame.render_widget(Paragraph::new("no restp command of this user runs"), above);
    } else {
        let widths = fitting(&table::widths(rows), above.width);
        let head =
            drawn(&HEAD, widths.len()).style(Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED));
        let lines = rows.iter().map(|row| drawn(row, widths.len()));
        let table = Table::new(lines, widths.clone())
            .header(head)
            .column_spacing(SPACING);
        frame.render_stateful_widget(table, above, state);
    }
    frame.render_widget(
        Line::from("q ends, arrows scroll").style(Style::new().dim()),
        below,
    );
}

/// The columns that have room, from the left; of a very narrow terminal the first one.
fn fitting(widths: &[usize], room: u16) -> Vec<Constraint> {
    let mut taken = 0;
    let fits = widths.iter().take_while(|width| {
        taken += **width;
        let fits = taken <= usize::from(room);
        taken += usize::from(SPACING);
        fits
    });
    let count = fits.count().max(1);
    widths[..count]
        .iter()
        .map(|width| Constraint::Length(*width as u16))
        .collect()
}

fn drawn(row: &Row, columns: usize) -> Drawn<'_> {
    let cells = Drawn::new(row.cells.iter().take(columns).map(|cell| Cell::from(cell.text())));
    if row.is_path {
        cells.style(Style::new().dim())
    } else {
        cells
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;
    use crate::monitor::snapshot::Snapshot;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn a_narrow_terminal_shows_what_has_room() {
        let snapshot = Snapshot {
            command: "recv".into(),
            pid: 4711,
            seconds: 1.0,
            forged_datagrams: 0,
            connections: Vec::new(),
        };
        let rows = table::rows(&std::collections::BTreeMap::new(), None, &snapshot);
        for (width, height) in [(80, 10), (20, 3), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal
                .draw(|frame| draw(frame, &rows, &mut TableState::default()))
                .unwrap();
            let shown = terminal.backend().to_string();
            assert_eq!(shown.contains("4711"), width >= 20, "{shown}");
        }
    }
}

//! Snapshots as rows of words: rates from two of them, the state in a word.

use crate::monitor::snapshot::{Connection, Path, Snapshot};
use crate::output;
use std::collections::BTreeMap;

/// The head of the table.
pub const HEAD: Row = Row {
    cells: [
        Cell::Fixed("PID"),
        Cell::Fixed("command"),
        Cell::Fixed("peer"),
        Cell::Fixed("state"),
        Cell::Fixed("out"),
        Cell::Fixed("in"),
        Cell::Fixed("lost"),
        Cell::Fixed("round trip"),
        Cell::Fixed("streams"),
        Cell::Fixed("made of"),
    ],
    is_path: false,
};

pub const COLUMNS: usize = 10;

/// A line of the table: a connection, or one of its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub cells: [Cell; COLUMNS],
    pub is_path: bool,
}

/// What stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Fixed(&'static str),
    Made(String),
}

impl Cell {
    pub fn text(&self) -> &str {
        match self {
            Cell::Fixed(text) => text,
            Cell::Made(text) => text,
        }
    }
}

/// Counters of a moment.
#[derive(Clone, Copy)]
struct Counted {
    sent: u64,
    received: u64,
    packets: u64,
    lost: u64,
}

/// The rows of one command: `first` is what it told first of each connection.
pub fn rows(first: &BTreeMap<u64, Connection>, before: Option<&Snapshot>, latest: &Snapshot) -> Vec<Row> {
    let span = before.map_or(0.0, |before| latest.seconds - before.seconds);
    let mut rows = Vec::new();
    if latest.connections.is_empty() {
        rows.push(idle(latest));
    }
    for connection in &latest.connections {
        let earlier =
            before.and_then(|before| before.connections.iter().find(|known| known.id == connection.id));
        rows.push(of_connection(latest, earlier, connection, span));
        if connection.paths.len() > 1 {
            rows.extend(connection.paths.iter().map(|path| {
                let same = |known: &&Path| (known.local, known.remote) == (path.local, path.remote);
                of_path(
                    earlier.and_then(|earlier| earlier.paths.iter().find(same)),
                    path,
                    span,
                )
            }));
        }
        let at_first = first.get(&connection.id);
        let changed = at_first
            .into_iter()
            .flat_map(|at_first| changes(at_first, connection));
        rows.extend(connection.found.iter().cloned().chain(changed).map(note));
    }
    rows
}

/// A sentence of its own, under the connection that it is about.
fn note(sentence: String) -> Row {
    let mut row = empty(true);
    row.cells[COLUMNS - 1] = Cell::Made(sentence);
    row
}

/// What a connection is made of now and was not at first.
fn changes(at_first: &Connection, now: &Connection) -> Vec<String> {
    let changed = |(service, choice): (&String, &String)| {
        let before = at_first
            .composition
            .get(service)
            .filter(|before| *before != choice)?;
        Some(format!("{service}: {before}, now {choice}"))
    };
    now.composition.iter().filter_map(changed).collect()
}

fn idle(latest: &Snapshot) -> Row {
    let mut row = empty(false);
    row.cells[0] = Cell::Made(latest.pid.to_string());
    row.cells[1] = Cell::Made(latest.command.clone());
    row.cells[3] = Cell::Fixed("waiting");
    row
}

fn of_connection(latest: &Snapshot, earlier: Option<&Connection>, connection: &Connection, span: f64) -> Row {
    let counted = |connection: &Connection| Counted {
        sent: connection.bytes_sent,
        received: connection.bytes_received,
        packets: connection.packets_sent,
        lost: connection.packets_lost,
    };
    let mut row = moved(earlier.map(counted), counted(connection), span);
    row.cells[0] = Cell::Made(latest.pid.to_string());
    row.cells[1] = Cell::Made(latest.command.clone());
    row.cells[2] = peer(connection);
    row.cells[3] = Cell::Fixed(state(earlier, connection));
    row.cells[7] = round_trip(connection.srtt_ms);
    row.cells[8] = streams(connection);
    row.cells[9] = Cell::Made(made_of(connection));
    row
}

fn of_path(earlier: Option<&Path>, path: &Path, span: f64) -> Row {
    let counted = |path: &Path| Counted {
        sent: path.bytes_sent,
        received: path.bytes_received,
        packets: path.packets_sent,
        lost: path.packets_lost,
    };
    let now = counted(path);
    let mut row = moved(earlier.map(counted), now, span);
    row.is_path = true;
    row.cells[2] = Cell::Made(format!("  {} - {}", path.local, path.remote));
    let is_silent = earlier.is_some_and(|earlier| path.bytes_received == earlier.bytes_received);
    row.cells[3] = match (path.down_events, is_silent) {
        (_, false) => Cell::Fixed(""),
        (0, true) => Cell::Fixed("silent"),
        (times, true) => Cell::Made(format!("silent, was down {times} times")),
    };
    row.cells[7] = round_trip(path.srtt_ms);
    row
}

/// Rates and losses of the time between two looks.
fn moved(earlier: Option<Counted>, now: Counted, span: f64) -> Row {
    let mut row = empty(false);
    let Some(earlier) = earlier.filter(|_| span > 0.0) else {
        return row;
    };
    let rate =
        |before: u64, now: u64| Cell::Made(output::rate(now.saturating_sub(before) as f64 * 8.0 / span));
    row.cells[4] = rate(earlier.sent, now.sent);
    row.cells[5] = rate(earlier.received, now.received);
    let packets = now.packets.saturating_sub(earlier.packets);
    if packets > 0 {
        let lost = now.lost.saturating_sub(earlier.lost);
        row.cells[6] = Cell::Made(format!("{:.1} %", 100.0 * lost as f64 / packets as f64));
    }
    row
}

fn empty(is_path: bool) -> Row {
    Row {
        cells: std::array::from_fn(|_| Cell::Fixed("")),
        is_path,
    }
}

/// Where the other end is; its key is longer than a column. Who publishes has no other end: anyone may ask.
fn peer(connection: &Connection) -> Cell {
    let path = connection.paths.first();
    match path {
        Some(path) => Cell::Made(path.remote.to_string()),
        None if connection.established => Cell::Fixed("anyone"),
        None => Cell::Fixed("?"),
    }
}

fn state(earlier: Option<&Connection>, connection: &Connection) -> &'static str {
    let heard = |earlier: &Connection| connection.packets_received > earlier.packets_received;
    match (connection.established, earlier.map(heard)) {
        (false, _) => "setting up",
        (true, Some(false)) if connection.in_flight > 0 => "no answer",
        (true, Some(false)) => "idle",
        (true, _) => "up",
    }
}

fn round_trip(milliseconds: Option<f64>) -> Cell {
    milliseconds.map_or(Cell::Fixed(""), |milliseconds| {
        Cell::Made(format!("{milliseconds:.1} ms"))
    })
}

/// Those that are open, of all that were opened.
fn streams(connection: &Connection) -> Cell {
    match connection.streams_opened {
        0 => Cell::Fixed(""),
        opened => Cell::Made(format!("{} of {opened}", connection.streams_open)),
    }
}

/// The services that differ most from one connection to another.
fn made_of(connection: &Connection) -> String {
    let services = ["reliability", "congestion", "paths"];
    let choices = services
        .iter()
        .filter_map(|service| connection.composition.get(*service));
    choices.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// How wide each column is.
pub fn widths(rows: &[Row]) -> [usize; COLUMNS] {
    std::array::from_fn(|column| {
        let cells = rows
            .iter()
            .chain([&HEAD])
            .map(|row| row.cells[column].text().chars().count());
        cells.max().unwrap_or(0)
    })
}

/// The table for a file or a pipe, which may lead to a terminal: what another process told is shown without control characters.
pub fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no restp command of this user runs".into();
    }
    let widths = widths(rows);
    let lines = [&HEAD].into_iter().chain(rows).map(|row| {
        let cells = row.cells.iter().zip(widths);
        let line: Vec<_> = cells
            .map(|(cell, width)| format!("{:width$}", cell.text().replace(char::is_control, "?")))
            .collect();
        line.join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;

    fn path(port: u16, bytes_sent: u64, bytes_received: u64) -> Path {
        Path {
            local: format!("192.0.2.1:{port}").parse().unwrap(),
            remote: "192.0.2.2:7070".parse().unwrap(),
            bytes_sent,
            bytes_received,
            packets_sent: bytes_sent / 1000,
            packets_lost: 0,
            srtt_ms: Some(20.0),
            suspicions: 0,
            down_events: u64::from(port == 2),
            mode: None,
            loss_causes: None,
        }
    }

    fn snapshot(seconds: f64, paths: Vec<Path>, packets_received: u64) -> Snapshot {
        let connection = Connection {
            id: 3,
            established: true,
            srtt_ms: Some(20.04),
            bytes_sent: paths.iter().map(|path| path.bytes_sent).sum(),
            packets_sent: paths.iter().map(|path| path.packets_sent).sum(),
            packets_lost: (seconds * 20.0) as u64,
            packets_received,
            in_flight: 4,
            streams_open: 3,
            streams_opened: 8,
            composition: [("congestion".to_owned(), "adaptive".to_owned())].into(),
            paths,
            ..Connection::default()
        };
        Snapshot {
            command: "send".into(),
            pid: 77,
            seconds,
            forged_datagrams: 0,
            connections: vec![connection],
        }
    }

    fn words(row: &Row) -> Vec<&str> {
        row.cells.iter().map(Cell::text).collect()
    }

    #[test]
    fn rates_and_losses_are_those_since_the_last_look() {
        let before = snapshot(1.0, vec![path(1, 1_000_000, 10)], 5);
        let latest = snapshot(2.0, vec![path(1, 2_000_000, 20)], 6);
        let rows = rows(&BTreeMap::new(), Some(&before), &latest);
        let expected = [
            "77",
            "send",
            "192.0.2.2:7070",
            "up",
            "8.0 Mbit/s",
            "0 bit/s",
            "2.0 %",
            "20.0 ms",
            "3 of 8",
            "adaptive",
        ];
        assert_eq!(rows.len(), 1, "one path is told with its connection");
        assert_eq!(words(&rows[0]), expected);
    }

    #[test]
    fn a_first_look_has_no_rates() {
        let rows = rows(
            &BTreeMap::new(),
            None,
            &snapshot(1.0, vec![path(1, 1_000_000, 10)], 5),
        );
        assert_eq!(words(&rows[0])[4..7], ["", "", ""]);
    }

    #[test]
    fn a_silent_connection_that_waits_for_an_answer_says_so() {
        let before = snapshot(1.0, vec![path(1, 1000, 10)], 5);
        let mut latest = snapshot(2.0, vec![path(1, 2000, 10)], 5);
        assert_eq!(
            words(&rows(&BTreeMap::new(), Some(&before), &latest)[0])[3],
            "no answer"
        );
        latest.connections[0].in_flight = 0;
        assert_eq!(
            words(&rows(&BTreeMap::new(), Some(&before), &latest)[0])[3],
            "idle"
        );
        latest.connections[0].established = false;
        assert_eq!(
            words(&rows(&BTreeMap::new(), Some(&before), &latest)[0])[3],
            "setting up"
        );
    }

    #[test]
    fn of_several_paths_each_has_a_row() {
        let before = snapshot(1.0, vec![path(1, 0, 0), path(2, 0, 50)], 5);
        let latest = snapshot(3.0, vec![path(1, 500_000, 9), path(2, 0, 50)], 6);
        let rows = rows(&BTreeMap::new(), Some(&before), &latest);
        assert_eq!(rows.len(), 3);
        assert_eq!(
            words(&rows[1])[2..5],
            ["  192.0.2.1:1 - 192.0.2.2:7070", "", "2.0 Mbit/s"]
        );
        assert_eq!(words(&rows[2])[3], "silent, was down 1 times");
    }

    #[test]
    fn what_was_found_and_what_has_changed_stand_below() {
        let first = snapshot(1.0, vec![path(1, 0, 0)], 5);
        let mut latest = snapshot(2.0, vec![path(1, 0, 0)], 6);
        latest.connections[0].found = vec!["1.1 % lost, corruption (98 %): rate kept".into()];
        latest.connections[0].composition = [("congestion".to_owned(), "cubic".to_owned())].into();
        let told = first
            .connections
            .iter()
            .map(|connection| (connection.id, connection.clone()));
        let rows = rows(&told.collect(), Some(&first), &latest);
        let last: Vec<_> = rows.iter().map(|row| words(row)[COLUMNS - 1]).collect();
        assert_eq!(
            last,
            [
                "cubic",
                "1.1 % lost, corruption (98 %): rate kept",
                "congestion: adaptive, now cubic"
            ]
        );
    }

    #[test]
    fn what_another_process_tells_does_not_steer_the_terminal() {
        let mut latest = snapshot(1.0, vec![path(1, 0, 0)], 5);
        latest.command = "a\u{1b}[2J\u{9b}2J\n".into();
        let choices = [("congestion".to_owned(), "\u{1b}]0;owned\u{7}".to_owned())];
        latest.connections[0].composition = choices.into();
        let text = text(&rows(&BTreeMap::new(), None, &latest));
        assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn a_command_without_connections_waits() {
        let mut latest = snapshot(1.0, Vec::new(), 0);
        latest.connections.clear();
        assert_eq!(
            words(&rows(&BTreeMap::new(), None, &latest)[0])[..4],
            ["77", "send", "", "waiting"]
        );
        assert!(text(&[]).contains("no restp command"));
        assert!(text(&rows(&BTreeMap::new(), None, &latest)).starts_with("PID"));
    }
}

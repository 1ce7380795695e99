//! What applications call: open, write, read, close, change, by flow ([`Flow`]).

use super::Endpoint;
use super::session::Session;
use super::table::Key;
use crate::association::Association;
use crate::composition::Composition;
use crate::connection::{Connection, Ports};
use bytes::Bytes;
use restp_base::flow::{Change, ChangeError, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::PathAddress;
use restp_base::observe::{Changed, Loss};
use restp_base::streams::Streams;
use restp_base::time::Time;

impl Endpoint {
    /// Goes on with the services of `to` on a flow that runs (docs/adr/0007).
    ///
    /// # Errors
    /// When `to` breaks a rule, changes what the set-up has settled, or the peer cannot follow. Nothing is changed then.
    pub fn recompose(&mut self, now: Time, flow: FlowId, to: Composition) -> Result<Change, ChangeError> {
        self.change_to(now, flow, to, |_| true)
    }

    /// The same, where the application `names` some keys.
    fn change_to(
        &mut self,
        now: Time,
        flow: FlowId,
        to: Composition,
        names: impl Fn(&str) -> bool,
    ) -> Result<Change, ChangeError> {
        let to = to
            .check()
            .map_err(|refusal| ChangeError::Invalid(refusal.to_string()))?;
        self.with(flow, |session| session.reconfigure(now, to, names))
            .unwrap_or(Err(ChangeError::NotRunning))
    }
}

impl Flow for Endpoint {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let unsupported = |reason: String| OpenError::Unsupported(reason);
        let held = self.table.len();
        if held >= self.config.max_connections {
            let sentence = format!("this endpoint already holds its {held} connections");
            return Err(unsupported(sentence));
        }
        if self.services.multipath() {
            let (composition, key) = (self.composition.clone(), self.chance(now, path).to_be_bytes());
            let association = Association::open(now, composition, self.services, key, path, port);
            let index = self.table.insert(None, Session::Several(association));
            self.dial(now, index);
            if !self.table.has_path(index) {
                return Err(OpenError::NoPort(path.remote));
            }
            self.touch(index);
            return Ok(self.table.flow(index));
        }
        let local = self
            .free_port(path.remote, port)
            .ok_or(OpenError::NoPort(path.remote))?;
        let ports = Ports { local, remote: port };
        let isn = self.initial_number(now, path, ports);
        let composition = self.composition.clone();
        let cookie = self.cache.find(now, path.remote, port);
        let mut connection = Connection::open(now, composition, self.services, path, ports, isn, cookie);
        connection.consent_to(self.config.consent());
        let index = self.table.insert(
            Some(Key {
                ports,
                remote: path.remote,
            }),
            Session::One(connection),
        );
        self.touch(index);
        Ok(self.table.flow(index))
    }

    fn add_path(
        &mut self,
        now: Time,
        flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        let added = self.with(flow, |session| session.add_line(now, path, backup));
        match added {
            Some(true) => Ok(()),
            _ => Err(OpenError::Unsupported(
                "this flow has one path; choose paths = \"spreading\" or \"hot-standby\"".into(),
            )),
        }
    }

    fn remove_path(&mut self, now: Time, flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        let removed = self.with(flow, |session| session.remove_line(now, path));
        match removed {
            Some(Some(true)) => Ok(()),
            Some(Some(false)) => Err(OpenError::Unsupported(format!(
                "{} is the only one of the paths of this flow that works; add another first",
                path.local
            ))),
            Some(None) | None => Err(OpenError::NoSuchPath(path.local)),
        }
    }

    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.with(flow, |connection| connection.write(now, data))
            .unwrap_or(Err(WriteError::Closed))
    }

    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        path: PathAddress,
    ) -> Result<(), WriteError> {
        self.with(flow, |session| session.write_on(now, data, path))
            .unwrap_or(Err(WriteError::Closed))
    }

    fn read(&mut self, _now: Time, flow: FlowId) -> Read {
        let Some(index) = self.table.index(flow) else {
            return Read::End;
        };
        let Some(connection) = self.table.at(index) else {
            return Read::End;
        };
        let read = connection.read();
        if connection.wants_turn() {
            self.touch(index);
        }
        read
    }

    fn finish(&mut self, now: Time, flow: FlowId) {
        self.with(flow, |session| session.finish(now));
    }

    fn streams(&mut self, now: Time, flow: FlowId) -> Option<&mut dyn Streams> {
        let index = self.table.index(flow)?;
        self.table.at(index)?.streams()?;
        self.touch(index); // what the application does now leaves with the next turn
        let streams = self.table.at(index)?.streams_at(now)?;
        Some(streams)
    }

    fn abort(&mut self, now: Time, flow: FlowId) {
        self.with(flow, |connection| connection.abort(now));
    }

    fn release(&mut self, now: Time, flow: FlowId) {
        if let Some(index) = self.table.index(flow) {
            self.table.release(index);
            self.with(flow, |session| session.discard(now));
        }
    }

    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.table.get(flow).map(Session::stats)
    }

    fn take_losses(&mut self, flow: FlowId, into: &mut Vec<Loss>) -> bool {
        let index = self.table.index(flow);
        if let Some(session) = index.and_then(|index| self.table.at(index)) {
            session.take_losses(into);
        }
        true
    }

    fn reconfigure(
        &mut self,
        now: Time,
        flow: FlowId,
        set: &[(String, String)],
    ) -> Result<Change, ChangeError> {
        let Some(session) = self.table.get(flow) else {
            return Err(ChangeError::NotRunning);
        };
        let pairs = set.iter().map(|(key, value)| (&**key, &**value));
        let to = Composition::from_pairs(Composition::clone(session.outlook()), pairs)
            .map_err(|error| ChangeError::Invalid(error.to_string()))?;
        // A preset names every key.
        let names = |name: &str| set.iter().any(|(key, _)| [name, "preset"].contains(&key.trim()));
        self.change_to(now, flow, to, names)
    }

    fn take_changes(&mut self, now: Time, flow: FlowId, into: &mut Vec<Changed>) -> bool {
        let index = self.table.index(flow);
        if let Some(session) = index.and_then(|index| self.table.at(index)) {
            session.take_changes(now, into);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composition::Preset;
    use crate::endpoint::EndpointConfig;
    use restp_base::machine::{Datagram, Machine};

    /// It did, and each read cost a look at everything that might leave.
    #[test]
    fn who_asks_for_streams_that_are_not_there_gives_no_turn() {
        for carries in [false, true] {
            let mut composition = Preset::named("cubic").expect("a preset").composition();
            if carries {
                composition.set("framing", "streams").expect("a choice");
                composition.set("ordering", "unordered").expect("a choice");
            }
            let mut endpoint = Endpoint::new(EndpointConfig::new(composition.check().expect("valid")));
            let path = PathAddress {
                local: ([10, 0, 0, 1], 0).into(),
                remote: ([10, 0, 0, 2], 0).into(),
            };
            let flow = endpoint.open(Time::ZERO, path, 7).expect("a flow");
            while endpoint.poll_transmit(Time::ZERO, &mut Datagram::empty()) {}
            assert!(endpoint.turns.is_empty(), "{carries}");
            assert_eq!(endpoint.streams(Time::ZERO, flow).is_some(), carries);
            assert_eq!(endpoint.turns.is_empty(), !carries);
        }
    }
}

//! Services of an association over several paths change while it runs: those that one end decides, on every path.

use super::Association;
use crate::composition::{ValidComposition, agreed_key, change};
use crate::connection::{Connection, Record};
use restp_base::flow::{Change, ChangeError};
use restp_base::observe::{Changed, Why};
use restp_base::time::Time;
use restp_services::framing::SendBuffer;
use std::sync::Arc;

/// What the application has changed, which holds for all paths, those to come included.
#[derive(Debug, Default)]
pub(super) struct Changes {
    record: Record,
    /// It has changed something: a path whose set-up began before has it to catch up with.
    any: bool,
}

impl Association {
    /// Goes on with the services of `to`; paths that are dialled later have them as well.
    pub(crate) fn reconfigure(&mut self, now: Time, to: ValidComposition) -> Result<Change, ChangeError> {
        if !self.shared.is_established() || self.shared.is_over() {
            return Err(ChangeError::NotRunning);
        }
        let change = change(&self.composition, &to)?;
        if change == Change::Agreed {
            let key = agreed_key(&self.composition, &to).unwrap_or_default();
            return Err(ChangeError::Unsupported(format!(
                "{key} is one for all paths, and stays where there are several; change what is local"
            )));
        }
        self.below = Arc::new(super::below(&to));
        if let Some(streams) = self.streams_mut() {
            streams.share_out(to.send_buffer_bytes);
        }
        if let Some(stream) = &mut self.stream {
            stream.scheduler.schedule_by(to.scheduling.clone());
        }
        self.shared.sender_mut().schedule_by(
            to.scheduling.clone(),
            SendBuffer::of_waiting(to.send_buffer_bytes),
        );
        for ordinal in 0..self.shared.paths().len() {
            if !self.shared.paths()[ordinal].vacant {
                self.change_path(now, ordinal);
            }
        }
        self.changes.any = true;
        let record = &mut self.changes.record;
        record.note_all(now, &self.composition, &to, Why::Application);
        self.composition = Arc::new(to);
        Ok(change)
    }

    /// One that is being set up keeps what it has until it is up, and one that ends to its end.
    fn change_path(&mut self, now: Time, ordinal: usize) {
        let below = self.below.clone();
        let _ = self.with(ordinal, |connection| {
            // How it was set up stays as it was: a path that joins asks less often than the first.
            let settled = connection.composition().handshake;
            connection.reconfigure(now, below.with_handshake(settled))
        });
    }

    /// A path is up: what has changed meanwhile holds for it, too.
    pub(super) fn catch_up(&mut self, now: Time, ordinal: usize) {
        if self.changes.any {
            self.change_path(now, ordinal);
        }
    }

    /// See [`restp_base::flow::Flow::take_changes`]: what the application wants once, what each path does by itself.
    pub(crate) fn take_changes(&mut self, now: Time, into: &mut Vec<Changed>) {
        self.changes.record.take(into);
        let mut take = |connection: &mut Connection| {
            let mut of_path = Vec::new();
            connection.take_changes(now, &mut of_path);
            into.extend(of_path.into_iter().filter(|changed| changed.key == "mode"));
        };
        if self.stream.is_none() {
            // Asked after every step: that must not make each path look at all it knows again.
            let members = self.shared.observed().filter(|member| !member.vacant);
            return members.for_each(|member| take(&mut member.connection));
        }
        for ordinal in 0..self.shared.paths().len() {
            // The lane of one that has ended may be another's by now.
            if !self.shared.paths()[ordinal].vacant {
                self.with(ordinal, &mut take);
            }
        }
    }
}

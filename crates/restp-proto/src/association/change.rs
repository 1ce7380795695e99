//! Services of an association over several paths change while it runs: those that one end decides, on every path.

use super::Association;
use crate::composition::{ValidComposition, agreed_key, change};
use crate::connection::Connection;
use restp_base::flow::{Change, ChangeError};
use restp_base::observe::Changed;
use restp_base::time::Time;
use std::sync::Arc;

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
        self.shared
            .sender_mut()
            .schedule_by(to.scheduling.clone(), to.send_buffer_bytes);
        for ordinal in 0..self.shared.paths().len() {
            if !self.shared.paths()[ordinal].vacant {
                let below = ValidComposition::clone(&self.below);
                // One that is being set up, or has ended, keeps what it has.
                let _ = self.with(ordinal, |connection| connection.reconfigure(now, below));
            }
        }
        self.composition = Arc::new(to);
        Ok(change)
    }

    /// See [`restp_base::flow::Flow::take_changes`]; those of the first path stand for all that the application wants.
    pub(crate) fn take_changes(&mut self, now: Time, into: &mut Vec<Changed>) {
        let mut take = |ordinal: usize, connection: &mut Connection| {
            let mut of_path = Vec::new();
            connection.take_changes(now, &mut of_path);
            let counts = |changed: &Changed| ordinal == 0 || changed.key == "mode";
            into.extend(of_path.into_iter().filter(counts));
        };
        if self.stream.is_none() {
            // Asked after every step: that must not make each path look at all it knows again.
            let members = self.shared.observed().enumerate();
            return members.for_each(|(ordinal, member)| take(ordinal, &mut member.connection));
        }
        for ordinal in 0..self.shared.paths().len() {
            self.with(ordinal, |connection| take(ordinal, connection));
        }
    }
}

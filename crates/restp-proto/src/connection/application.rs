//! What the application calls: write, read, finish, abort, and losing interest ([`restp_base::flow::Flow`]).

use super::{Connection, State};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Read, WriteError};
use restp_base::time::Time;
use restp_services::connection_management::Establishment;
use restp_services::flow_control::FlowControl;
use restp_services::framing::Framing;
use restp_services::sender::Sender;

impl Connection {
    /// Takes data to send. See [`restp_base::flow::Flow::write`].
    pub(crate) fn write(&mut self, now: Time, data: Bytes) -> Result<(), WriteError> {
        if self.release.is_wanted() || self.state.is_over() {
            return Err(WriteError::Closed);
        }
        let takes = WriteTo {
            limit: self.composition.payload_bytes(),
            empty: self.composition.framing != Framing::Fixed || !self.services_are_numbered(),
        };
        write(&mut self.sender, now, data, takes)
    }

    /// Takes the next data for the reader.
    pub(crate) fn read(&mut self) -> Read {
        let over = self.state.is_over();
        let offers = self.composition.flow_control != FlowControl::None && !over;
        self.receiver.read(over || self.release.remote_finished(), offers)
    }

    /// No more writes will come.
    pub(crate) fn finish(&mut self) {
        self.release.finish();
    }

    /// Breaks off and tells the peer.
    pub(crate) fn abort(&mut self, now: Time) {
        if !self.state.is_over() {
            let tell = self.composition.establishment != Establishment::Connectionless;
            self.end(
                CloseReason::Aborted,
                if tell {
                    State::resetting(now)
                } else {
                    State::Closed
                },
            );
        }
    }

    /// The application has lost interest: what is unread is dropped.
    pub(crate) fn discard(&mut self) {
        self.receiver.discard(false);
    }
}

/// What a flow takes: messages of so many bytes, and empty ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTo {
    pub(crate) limit: usize,
    pub(crate) empty: bool,
}

/// Gives `data` to the sender.
pub(crate) fn write(
    sender: &mut Sender,
    now: Time,
    data: Bytes,
    WriteTo { limit, empty }: WriteTo,
) -> Result<(), WriteError> {
    let size = data.len();
    if !sender.fits(&data, limit) {
        return Err(WriteError::TooLarge { size, limit });
    }
    if data.is_empty() && !empty {
        return Err(WriteError::Empty);
    }
    if sender.write(now, data) {
        Ok(())
    } else {
        Err(WriteError::Blocked)
    }
}

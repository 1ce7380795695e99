//! What a segment of the peer says. Segments arrive once each and in any order: a frame may be about a stream that is over, or
//! say less than one before (RFC 9000 §2.2).

use super::frame::{Frame, Violation};
use super::receiving::Receiving;
use super::{Stream, Streams};
use bytes::Bytes;
use restp_base::streams::{StreamEvent, StreamId};

impl Streams {
    /// Takes a segment.
    ///
    /// # Errors
    /// When it is none, or breaks a rule: the peer cannot be followed any further, and the flow is to be broken off.
    pub fn on_segment(&mut self, mut segment: Bytes) -> Result<(), Violation> {
        if segment.is_empty() {
            return Err(Violation("a segment without a frame"));
        }
        while !segment.is_empty() {
            let frame = Frame::parse(&mut segment)?;
            self.on_frame(frame)?;
        }
        Ok(())
    }

    fn on_frame(&mut self, frame: Frame) -> Result<(), Violation> {
        match frame {
            Frame::Data {
                id,
                offset,
                data,
                fin,
            } => self.on_arrival(id, |rx| rx.on_data(offset, data, fin)),
            Frame::Reset { id, code, size } => self.on_arrival(id, |rx| rx.on_reset(code, size)),
            Frame::Stop { id, code } => {
                let stopped = self.find(id)?.and_then(|stream| stream.tx.on_stop(code));
                if let Some(size) = stopped {
                    self.turns.announce(Frame::Reset { id, code, size });
                }
                self.refresh(id);
                self.sweep(id);
                Ok(())
            }
            Frame::StreamCredit { id, most } => {
                if let Some(stream) = self.find(id)? {
                    stream.tx.on_credit(most);
                }
                self.refresh(id);
                Ok(())
            }
            Frame::Credit { most } => {
                self.turns.on_credit(most);
                Ok(())
            }
            Frame::Streams { most } => {
                self.may_open = self.may_open.max(most);
                if self.may_open > self.opened && std::mem::take(&mut self.opener_waits) {
                    self.events.push_back(StreamEvent::Available);
                }
                Ok(())
            }
        }
    }

    /// Something of the peer's direction of a stream. It may have been sent before its sender, or its reader, broke it off.
    fn on_arrival(
        &mut self,
        id: StreamId,
        take: impl FnOnce(&mut Receiving) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        self.find(id)?;
        self.receive(id, take)?.unwrap_or(Ok(()))
    }

    /// A stream that the peer names; none if it is over. Naming one of its own opens it, and all before it (RFC 9000 §2.1).
    fn find(&mut self, id: StreamId) -> Result<Option<&mut Stream>, Violation> {
        if self.is_own(id) {
            if id.ordinal() >= self.opened {
                return Err(Violation("a stream that was never opened"));
            }
        } else if id.ordinal() >= self.peer_opened {
            self.peer_streams.use_up_to(id.ordinal() + 1)?;
            while self.peer_opened <= id.ordinal() {
                let id = StreamId::of(!self.opened_here, self.peer_opened);
                self.peer_opened += 1;
                self.insert(id);
                if self.discards {
                    self.leave(id);
                }
            }
            self.grant_streams();
            if !std::mem::replace(&mut self.application_knows, true) && !self.discards {
                self.events.push_back(StreamEvent::Opened);
            }
        }
        Ok(self.streams.get_mut(&id))
    }
}

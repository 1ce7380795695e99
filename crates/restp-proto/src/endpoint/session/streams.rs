//! A flow that carries streams (docs/protocol/streams.md): what arrives is theirs, and what the application hears is of them.

use super::Session;
use restp_base::flow::Read;
use restp_base::time::Time;
use restp_services::connection_management::Notice;
use restp_services::framing::Streams;

impl Session {
    pub(in crate::endpoint) fn streams(&self) -> Option<&Streams> {
        match self {
            Session::One(connection) => connection.streams(),
            Session::Several(association) => association.streams(),
        }
    }
    fn streams_mut(&mut self) -> Option<&mut Streams> {
        match self {
            Session::One(connection) => connection.streams_mut(),
            Session::Several(association) => association.streams_mut(),
        }
    }
    /// Its streams, to be written and read, where it carries some.
    pub(in crate::endpoint) fn streams_at(&mut self, now: Time) -> Option<&mut Streams> {
        match self {
            Session::One(connection) => connection.begin_progress(now),
            Session::Several(association) => association.begin_progress(now),
        }
        self.streams_mut()
    }
    pub(super) fn carries_streams(&self) -> bool {
        self.streams().is_some()
    }

    /// Moves what has arrived on to the streams, in whatever order it came. A peer that breaks their rules is left.
    pub(super) fn feed_streams(&mut self, now: Time) {
        if !self.carries_streams() {
            return;
        }
        loop {
            let read = self.read_own();
            let Some(streams) = self.streams_at(now) else {
                return;
            };
            match read {
                Read::Data(_) if streams.has_ended() => {} // came before it was left
                Read::Data(segment) => {
                    if streams.on_segment(segment).is_err() {
                        streams.on_flow_end();
                        self.abort_own(now);
                    }
                }
                Read::End => return streams.on_flow_end(),
                Read::Empty => return,
            }
        }
    }

    /// Every stream is over and the application wants no more: then so is this direction of the flow. True when that is so.
    pub(super) fn end_streams(&mut self) -> bool {
        let Some(streams) = self.streams_mut().filter(|streams| streams.may_end()) else {
            return false;
        };
        streams.close(); // nothing leaves behind the FIN, whatever the peer asks
        self.finish_own();
        true
    }

    /// That something can be read is of streams; only the end of them all is of the flow.
    pub(super) fn poll_notice_of_streams(&mut self) -> Option<Notice> {
        while let Some(notice) = self.poll_own_notice() {
            let streams = self.streams_mut()?;
            match notice {
                Notice::Readable if !streams.has_ended() => {}
                Notice::Closed(_) => {
                    streams.forget_events();
                    return Some(notice);
                }
                _ => return Some(notice),
            }
        }
        self.streams_mut()?.poll_event().map(Notice::Stream)
    }
}

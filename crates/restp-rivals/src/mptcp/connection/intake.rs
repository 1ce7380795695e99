//! What a segment of one subflow means for the connection, in order: set-up, Data ACK, data, DATA_FIN, the subflow's own end.

use super::Connection;
use crate::subflow::News;
use crate::tcp::connection::{Packet, Verdict};
use restp_base::flow::{CloseReason, PathState};
use restp_base::time::Time;
use restp_services::connection_management::Notice;

impl Connection {
    /// Takes a segment of the subflow `ordinal`.
    pub(crate) fn handle(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) -> Verdict {
        self.shared.paths_mut().introduce(now, ordinal);
        let shared = self.shared.shared();
        let (verdict, news) = self.shared.paths_mut()[ordinal]
            .tcp
            .handle_path(now, shared, packet);
        self.collect(now, ordinal, Some(news), false);
        verdict
    }

    /// What a segment has said, or a deadline has come to: the timer ran out. Then what became of the subflow.
    pub(super) fn collect(&mut self, now: Time, ordinal: usize, news: Option<News>, timed_out: bool) {
        if self.shared.paths()[ordinal].tcp.is_alone() {
            return; // the host makes it a connection of its own, with its notices
        }
        let mut ended = None;
        while let Some(notice) = self.shared.paths_mut()[ordinal].tcp.poll_notice() {
            match notice {
                Notice::Connected | Notice::Accepted => self.on_established(now, ordinal),
                Notice::Closed(reason) => ended = Some(reason),
                _ => {}
            }
        }
        if self.shared.paths()[ordinal].tcp.is_usable() {
            self.shared.tell(ordinal, PathState::Up);
            self.on_usable(now, ordinal);
        }
        if let Some(news) = news {
            self.on_news(now, ordinal, news);
        }
        let tcp = &mut self.shared.paths_mut()[ordinal].tcp;
        if tcp.was_finished() && !tcp.is_over() {
            tcp.finish(); // the peer gives this path up; what it has not delivered goes elsewhere
        }
        if timed_out {
            // What it carried is given to another, before anything new, as Linux does it.
            self.shared.paths_mut()[ordinal].reinjections += 1;
            self.shared.place_again(ordinal);
        }
        let member = &self.shared.paths()[ordinal];
        if member.tcp.is_over() && !member.gone {
            self.on_member_closed(now, ordinal, ended.unwrap_or(CloseReason::Reset));
        }
        self.conclude(now);
    }

    /// The first subflow establishes the connection.
    fn on_established(&mut self, now: Time, ordinal: usize) {
        if self.shared.establish(now) {
            let granted = self.shared.paths()[ordinal].tcp.peer_window_bytes();
            self.shared.sender_mut().set_window(granted);
        }
    }

    /// Data ACK, then what the subflow has delivered. What contradicts the end of the data is counted there.
    fn on_news(&mut self, now: Time, ordinal: usize, news: News) {
        if let Some((ack, window_bytes)) = news.ack {
            self.shared.on_data_ack(ack, Some(window_bytes));
        }
        for (start, payload) in news.arrived {
            let _counted = self.shared.on_data(now, start, payload);
        }
        if let Some(fin) = news.fin {
            let _counted = self.shared.on_data_fin(now, fin);
            self.shared.paths_mut()[ordinal].tcp.acknowledge_soon();
        }
        if let Some(added) = news.announced {
            self.on_announced(added);
        }
        if let Some(removed) = news.removed {
            self.on_removed(now, &removed);
        }
    }
}

//! Window flow control (ResTP §3.1.3, OP-25): the receiver advertises how many segments it takes, starting
//! with the one its acknowledgement names; 16 bits, no scaling; a zero window is probed once per RTO.

/// Largest value of the 16-bit field.
pub const MAX_ADVERTISED: u64 = 0xFFFF;

/// What a receiver grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowParameters {
    /// Segments held for the application, in order or not.
    pub segments: u32,
}

impl Default for WindowParameters {
    /// What is lost twice is missing for three round trips, and what follows it waits here: 32768 segments of 1400 bytes are three
    /// of 1 Gbit/s over 120 ms, or of 200 Mbit/s over a geostationary satellite.
    fn default() -> Self {
        WindowParameters { segments: 32_768 }
    }
}

/// The sender's side: how far the peer lets it go.
#[derive(Clone, Copy, Debug)]
pub struct SendWindow {
    /// First number the peer does not take yet.
    edge: u64,
    /// Acknowledgement the edge came with; an older packet must not move it back.
    at: u64,
}

impl SendWindow {
    /// Before the peer has advertised anything, `segments` from `next` on are allowed (OP-33).
    pub fn initial(next: u64, segments: u64) -> Self {
        SendWindow {
            edge: next + segments,
            at: next,
        }
    }

    /// The peer acknowledged `cumulative` and takes `window` units from there. Late packets are ignored: false.
    pub fn update(&mut self, cumulative: u64, window: u64) -> bool {
        let is_news = cumulative >= self.at;
        if is_news {
            self.at = cumulative;
            self.edge = cumulative + window;
        }
        is_news
    }

    /// The same where reports of several paths overtake each other: only an edge beyond all before moves it, because what
    /// was promised is kept (RFC 8684 §3.3.5).
    pub fn extend(&mut self, cumulative: u64, window: u64) {
        if cumulative + window > self.edge {
            self.at = cumulative;
            self.edge = cumulative + window;
        }
    }

    /// May the segment `number` be sent?
    pub fn allows(&self, number: u64) -> bool {
        number < self.edge
    }

    /// First number the peer does not take.
    pub fn edge(&self) -> u64 {
        self.edge
    }
}

/// The receiver's side: what to advertise.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveWindow {
    capacity: u64,
    /// Right edge last advertised.
    advertised_edge: u64,
}

impl ReceiveWindow {
    /// A window of `parameters.segments`, nothing advertised yet.
    pub fn new(next: u64, parameters: WindowParameters) -> Self {
        ReceiveWindow {
            capacity: u64::from(parameters.segments).min(MAX_ADVERTISED),
            advertised_edge: next,
        }
    }

    /// Segments held at most.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// First number that is out of the window when `next` is expected and `unread` segments wait for the reader.
    /// An edge once advertised is kept: what was promised is taken (RFC 1122 §4.2.2.16).
    pub fn edge(&self, next: u64, unread: u64) -> u64 {
        (next + self.capacity.saturating_sub(unread)).max(self.advertised_edge)
    }

    /// The value for the next packet, which acknowledges `next`.
    pub fn advertise(&mut self, next: u64, unread: u64) -> u16 {
        self.advertised_edge = self.edge(next, unread).min(next + MAX_ADVERTISED);
        (self.advertised_edge - next) as u16
    }

    /// What [`ReceiveWindow::advertise`] would say now, should a packet leave.
    pub fn offer(&self, next: u64, unread: u64) -> u16 {
        (self.edge(next, unread).min(next + MAX_ADVERTISED) - next) as u16
    }

    /// True when reading has opened at least half the window beyond what the peer knows, or anything at all
    /// while the peer believes it is shut: time for an update (RFC 1122 §4.2.3.3).
    pub fn update_is_due(&self, next: u64, unread: u64) -> bool {
        let gained = self.edge(next, unread) - self.advertised_edge;
        gained >= (self.capacity / 2).max(1) || (gained > 0 && self.advertised_edge <= next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_packet_does_not_move_the_edge_back() {
        let mut window = SendWindow::initial(100, 10);
        window.update(105, 20);
        window.update(101, 64);
        assert!(window.allows(124) && !window.allows(125));
        assert_eq!(window.edge(), 125);
        window.update(105, 0);
        assert!(!window.allows(105));
    }

    #[test]
    fn of_reports_that_overtake_each_other_the_farthest_edge_counts() {
        let mut window = SendWindow::initial(100, 10);
        window.extend(140, 0);
        assert_eq!(window.edge(), 140);
        window.extend(100, 30); // left before, on a slower path
        assert_eq!(window.edge(), 140);
        window.extend(120, 40);
        assert_eq!(window.edge(), 160);
    }

    #[test]
    fn a_reader_that_stops_closes_the_window_and_reading_opens_it_again() {
        let mut window = ReceiveWindow::new(0, WindowParameters { segments: 8 });
        assert_eq!(window.advertise(0, 0), 8);
        assert_eq!(window.advertise(5, 5), 3);
        assert_eq!(window.advertise(8, 8), 0);
        assert!(!window.update_is_due(8, 8));
        assert!(window.update_is_due(8, 7), "shut: the first free place is news");
        assert_eq!(window.advertise(8, 7), 1);
        assert!(!window.update_is_due(8, 6));
        assert!(window.update_is_due(8, 3), "half the window is news");
    }

    #[test]
    fn what_was_promised_is_taken() {
        let mut window = ReceiveWindow::new(0, WindowParameters { segments: 8 });
        window.advertise(0, 0);
        assert_eq!(window.edge(0, 8), 8);
        assert_eq!(
            ReceiveWindow::new(0, WindowParameters { segments: 100_000 }).advertise(7, 0),
            0xFFFF
        );
    }
}

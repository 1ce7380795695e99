//! What is counted.

/// What becomes of datagrams here. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealStats {
    /// Packets that opened.
    pub opened: u64,
    /// Datagrams that were not sealed, and were dropped.
    pub plain: u64,
    /// Datagrams of no known form.
    pub malformed: u64,
    /// Packets of no known session.
    pub unknown: u64,
    /// Packets and messages that are not genuine.
    pub forged: u64,
    /// Packets that were here before, or are too old to tell.
    pub replayed: u64,
    /// Packets and requests from an address that another peer holds.
    pub misplaced: u64,
    /// Packets of known paths from addresses that had not answered.
    pub elsewhere: u64,
    /// Paths whose peer answered at another address.
    pub moved: u64,
    /// Requests to a host that serves nobody.
    pub unserved: u64,
    /// Flows that ended because their address belongs to another host now.
    pub displaced: u64,
    /// Requests that came again.
    pub repeated_requests: u64,
    /// Requests meant for another key.
    pub for_others: u64,
    /// Requests with a ticket that opened, of clients that are served.
    pub resumed: u64,
    /// Requests with a ticket that did not open.
    pub stale_tickets: u64,
    /// Tickets shown here of which the host said that they do not open.
    pub refused_tickets: u64,
    /// Requests of clients that are not on the list.
    pub unwelcome: u64,
    /// Peers that were asked to prove their address first.
    pub retries: u64,
    /// Requests dropped because their source has too many unfinished handshakes, or sent too many that opened nothing.
    pub crowded: u64,
    /// Requests dropped because all sessions are in use, and packets because as many further paths are.
    pub overflowed: u64,
    /// Datagrams not sent because an address that is not proved would get more than three times what came from it.
    pub withheld: u64,
    /// First flights with early data that were taken.
    pub early: u64,
    /// First flights whose early data was not taken: it came before, or with an old token.
    pub early_refused: u64,
    /// Requests whose first message was computed with.
    pub computed: u64,
    /// Of these, requests whose token did not prove their address.
    pub computed_unproved: u64,
    /// Sessions of which their host said that it has forgotten them.
    pub resets: u64,
    /// Datagrams in requests that may not be taken twice.
    pub unsafe_requests: u64,
    /// Datagrams for addresses of no known peer, or of more than can wait.
    pub unsent: u64,
}

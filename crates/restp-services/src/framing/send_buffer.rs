//! Room for what an application writes (RFC 9293 §3.9.1, SEND).

/// A send buffer, of 4 GiB at most: each connection holds what this takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendBuffer {
    bytes: u32,
    holds_flight: bool,
}

impl SendBuffer {
    /// A buffer of `bytes` for what waits to be sent; a write that finds it full waits.
    pub const fn of_waiting(bytes: usize) -> Self {
        SendBuffer {
            bytes: saturated(bytes),
            holds_flight: false,
        }
    }

    /// The same where what is sent and not acknowledged takes room, too, as in TCP.
    pub const fn of_flight(bytes: usize) -> Self {
        SendBuffer {
            bytes: saturated(bytes),
            holds_flight: true,
        }
    }

    /// The same of another size.
    #[must_use]
    pub const fn sized(self, bytes: usize) -> Self {
        SendBuffer {
            bytes: saturated(bytes),
            ..self
        }
    }

    /// Its size.
    pub const fn bytes(self) -> usize {
        self.bytes as usize
    }

    /// That of a connection over so many paths. Where each of them holds its flight there is one for each (Linux: the sum of
    /// those of an MPTCP's subflows).
    #[must_use]
    pub fn over(self, paths: usize) -> Self {
        let times = if self.holds_flight { paths.max(1) } else { 1 };
        self.sized(self.bytes().saturating_mul(times))
    }

    fn taken(self, waiting: usize, in_flight: usize) -> usize {
        waiting + if self.holds_flight { in_flight } else { 0 }
    }

    /// With so many bytes waiting and in flight: no write is taken.
    pub fn is_full(self, waiting: usize, in_flight: usize) -> bool {
        self.taken(waiting, in_flight) >= self.bytes()
    }

    /// A writer that was refused may go on: half is free; a third, where it holds what is in flight, or the flight would shrink by
    /// half each time.
    pub fn has_room_again(self, waiting: usize, in_flight: usize) -> bool {
        let enough = if self.holds_flight {
            self.bytes() / 3 * 2
        } else {
            self.bytes() / 2
        };
        self.taken(waiting, in_flight) <= enough
    }
}

const fn saturated(bytes: usize) -> u32 {
    if bytes > u32::MAX as usize {
        u32::MAX
    } else {
        bytes as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_takes_room_where_it_is_held() {
        let (waiting, held) = (SendBuffer::of_waiting(90), SendBuffer::of_flight(90));
        assert!(!waiting.is_full(89, 1_000) && waiting.is_full(90, 0));
        assert!(!held.is_full(30, 59) && held.is_full(30, 60));
        assert!(waiting.has_room_again(45, 1_000) && !waiting.has_room_again(46, 0));
        assert!(held.has_room_again(10, 50) && !held.has_room_again(10, 51));
        assert_eq!(
            (
                waiting.over(3).bytes(),
                held.over(3).bytes(),
                held.over(0).bytes()
            ),
            (90, 270, 90)
        );
    }
}

//! A client that sends a request and a service that answers at once, over a [`Pair`].

use super::{PORT, Pair, Rule, Seen, Verdict, config};
use bytes::Bytes;
use restp_base::flow::FlowId;
use restp_base::time::{Duration, Time};
use restp_proto::{Acceptance, Cookie, CookieMint, EndpointConfig, KeptCookie};

/// Of a [`Pair`], in milliseconds.
pub const ROUND_TRIP: u64 = 20;

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
pub fn at(milliseconds: u64) -> Time {
    Time::ZERO + ms(milliseconds)
}

/// A service that reads a request and answers at once, and its client.
pub struct Web {
    pub pair: Pair,
    pub flow: FlowId,
    pub request: Bytes,
    pub response: Bytes,
    /// What each side has read, and when the first of it came.
    pub got: [Vec<u8>; 2],
    pub first_at: [Option<Time>; 2],
    pub answered: bool,
}

/// The cookie the server would give this client now.
pub fn cookie_of(config: &EndpointConfig, pair: &Pair) -> Cookie {
    CookieMint::new(config.cookies).mint(pair.now, pair.path(0).local.ip())
}

pub fn keep(pair: &mut Pair, cookie: Cookie) {
    let kept = KeptCookie {
        server: pair.path(0).remote,
        port: PORT,
        cookie,
        remaining: Duration::from_secs(3600),
    };
    pair.ends[0].keep_cookie(pair.now, kept);
}

/// The two ends of `preset` changed by `set`; the client has a valid cookie.
pub fn warm(preset: &str, set: &[(&str, &str)]) -> Pair {
    let config = config(preset, set);
    let mut pair = Pair::of(config.clone(), config.clone().listen(PORT, Acceptance::Any));
    let cookie = cookie_of(&config, &pair);
    keep(&mut pair, cookie);
    pair
}

impl Web {
    /// Opens, and writes `request` before anything has left.
    pub fn open(mut pair: Pair, request: &[u8], response: &[u8]) -> Self {
        let flow = pair.open();
        pair.write(0, flow, request);
        Web {
            pair,
            flow,
            request: Bytes::copy_from_slice(request),
            response: Bytes::copy_from_slice(response),
            got: [Vec::new(), Vec::new()],
            first_at: [None, None],
            answered: false,
        }
    }

    /// Runs in steps of a millisecond, in which the applications act.
    pub fn run(mut self, milliseconds: u64) -> Self {
        for _ in 0..milliseconds {
            self.act();
            self.pair.run_for(ms(1));
        }
        self.act();
        self
    }

    pub fn act(&mut self) {
        self.pair.run_for(Duration::ZERO);
        let flows = [Some(self.flow), self.pair.accepted()];
        for (side, flow) in flows.into_iter().enumerate() {
            let Some(flow) = flow else { continue };
            for data in self.pair.read_all(side, flow) {
                self.first_at[side].get_or_insert(self.pair.now);
                self.got[side].extend_from_slice(&data);
            }
        }
        if !self.answered
            && self.got[1].len() >= self.request.len()
            && let Some(accepted) = flows[1]
        {
            self.answered = true;
            let response = self.response.clone();
            self.pair.write(1, accepted, &response);
            self.pair.run_for(Duration::ZERO);
        }
    }

    /// When the first byte of the response was there. Both sides have read everything, once.
    pub fn answered_at(&self) -> u64 {
        assert_eq!(self.got[1], self.request, "the request, once");
        assert_eq!(self.got[0], self.response, "the response, once");
        self.first_at[0].expect("an answer").as_nanos() / 1_000_000
    }

    pub fn sent(&self, side: usize) -> impl Iterator<Item = &Seen> {
        self.pair.log.iter().filter(move |seen| seen.from == side)
    }
}

/// Drops the datagrams of each side with these positions, counted from 1.
pub fn lose(lost: [&'static [u64]; 2]) -> Rule {
    let mut sent = [0, 0];
    Box::new(move |seen| {
        sent[seen.from] += 1;
        if lost[seen.from].contains(&sent[seen.from]) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

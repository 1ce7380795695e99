//! Telephony: frames of 160 bytes every 20 ms from side 0, and how long after it was spoken each is heard (ResTP §4.5).

use super::*;

pub const FRAME: Duration = Duration::from_millis(20);

/// Somebody speaks from side 0, and somebody listens.
pub struct Call {
    pub pair: Pair,
    pub flow: FlowId,
    pub accepted: FlowId,
    pub began: Time,
    /// Number of each frame heard, and how long after it was spoken.
    pub heard: Vec<(u64, Duration)>,
}

impl Call {
    /// `par-arq` changed by `set`.
    pub fn over(one_way: Duration, set: &[(&str, &str)]) -> Self {
        let mut pair = Pair::new("par-arq", set);
        pair.delay = one_way;
        let flow = pair.open();
        pair.run_for(one_way * 3 + Duration::from_millis(4));
        let accepted = pair.accepted().expect("accepted");
        let began = pair.now;
        Call {
            pair,
            flow,
            accepted,
            began,
            heard: Vec::new(),
        }
    }

    /// The same over two paths, with a switch for each direction of each.
    pub fn over_two(one_way: Duration, set: &[(&str, &str)]) -> (Self, lines::Dead) {
        let (mut pair, flow, dead) = lines::two_paths("par-arq", set);
        pair.delay = one_way;
        pair.delays.insert(lines::client(2), one_way);
        pair.run_for(one_way * 6);
        let accepted = lines::both_up(&mut pair);
        let began = pair.now;
        let call = Call {
            pair,
            flow,
            accepted,
            began,
            heard: Vec::new(),
        };
        (call, dead)
    }

    /// Frames from number `first` on that were heard within `deadline`.
    pub fn in_time(&self, first: u64, deadline: Duration) -> usize {
        let of = |(frame, delay): &&(u64, Duration)| *frame >= first && *delay <= deadline;
        self.heard.iter().filter(of).count()
    }

    /// Speaks `frames` frames of 160 bytes and listens to whatever comes until half a second after the last.
    pub fn speak(&mut self, frames: u64) {
        let first = self
            .pair
            .now
            .since(self.began)
            .as_nanos()
            .div_ceil(FRAME.as_nanos());
        for frame in first..first + frames {
            let mut data = [0; 160];
            data[..8].copy_from_slice(&frame.to_be_bytes());
            self.pair.write(0, self.flow, &data);
            self.listen(FRAME);
        }
        self.listen(Duration::from_millis(500));
    }

    pub fn listen(&mut self, span: Duration) {
        let end = self.pair.now + span;
        while self.pair.now < end {
            self.pair.run_for(Duration::from_millis(1));
            for data in self.pair.read_all(1, self.accepted) {
                let frame = u64::from_be_bytes(data[..8].try_into().expect("a frame"));
                let spoken = self.began + FRAME * frame;
                self.heard.push((frame, self.pair.now.since(spoken)));
            }
        }
    }

    pub fn is_in_order(&self) -> bool {
        self.heard.windows(2).all(|pair| pair[0].0 < pair[1].0)
    }
    pub fn frames(&self) -> Vec<u64> {
        self.heard.iter().map(|(frame, _)| *frame).collect()
    }
    /// Times frame `frame` left, the first time included.
    pub fn copies(&self, frame: u64) -> usize {
        let is_copy = |seen: &&Seen| seen.is_data() && seen.payload[..8] == frame.to_be_bytes();
        self.pair.log.iter().filter(is_copy).count()
    }
}

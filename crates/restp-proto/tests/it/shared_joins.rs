//! Paths that share one space of numbers: a join that comes early, and writes with a path of their own.

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{Flow, FlowId};
use restp_proto::wire::{Flags, MpSetup};

fn shared() -> (Pair, FlowId, Dead) {
    let set = [SPREAD, &[("numbering", "shared")]].concat();
    two_paths("geo-spread", &set)
}

/// Whichever of the two is up first: the other has part in its numbers.
#[test]
fn a_join_that_overtakes_the_last_packet_of_the_set_up_shares_the_numbers() {
    for late in [MS * 5, MS * 100] {
        let (mut pair, flow, _) = shared();
        pair.rule = Box::new(move |seen| {
            let capable = matches!(seen.header.mp, Some(MpSetup::Capable(_)));
            if seen.from == 0 && capable && !seen.header.flags.has(Flags::SYN) {
                Verdict::Late(late + MS * 40)
            } else {
                Verdict::Pass
            }
        });
        pair.run_for(secs(1));
        let accepted = pair.accepted().expect("accepted");
        assert!(
            pair.transfer(0, (flow, accepted), &noise(300_000), secs(20)),
            "{late:?}"
        );
        assert!(
            pair.transfer(1, (flow, accepted), &noise(300_000), secs(20)),
            "{late:?}"
        );
    }
}

#[test]
fn a_write_takes_the_path_that_was_chosen_for_it_while_that_answers() {
    let (mut pair, flow, dead) = shared();
    let accepted = both_up(&mut pair);
    let second = line(&pair, 2);
    let from = pair.now;
    for _ in 0..20 {
        let now = pair.now;
        let data = bytes::Bytes::from(noise(3000));
        pair.ends[0].write_on(now, flow, data, second).expect("room");
        pair.run_for(MS * 20);
    }
    assert_eq!((carried(&pair, 1, from), carried(&pair, 2, from)), (0, 60_000));
    kill(&dead, 2);
    let now = pair.now;
    let data = bytes::Bytes::from(noise(3000));
    pair.ends[0].write_on(now, flow, data, second).expect("room");
    pair.run_for(secs(1));
    let got = pair.read_all(1, accepted).concat();
    assert_eq!(got.len(), 63_000, "another path carries it then");
}

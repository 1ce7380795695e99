//! What acknowledgements say beside their number: SACK, NAK, SNACK (TC §2.2, §3.2).

use crate::network::*;
use restp_base::flow::Flow;
use restp_base::time::Duration;
use restp_rivals::tcp::TcpParameters;
use restp_rivals::tcp::options::Options;
use restp_rivals::tcp::wire::{Flags, Header};
use restp_services::ack::NakMode;

const SCHEMES: [&str; 3] = ["sack", "nak", "snack"];

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn pair(scheme: &str, set: &[(&str, &str)]) -> Pair {
    let ack = format!("positive+{scheme}");
    let named = [&[("ack", &ack[..]), ("recovery", "pipe")], set].concat();
    Pair::new(&named)
}

/// Drops the first transmission of the data segments whose position among data segments is in `lost`.
fn lose(lost: &'static [usize]) -> Box<dyn FnMut(&Seen) -> Verdict> {
    let mut sent = Vec::new();
    Box::new(move |seen| {
        if seen.from != 0 || !seen.is_data() || sent.contains(&seen.header.sequence) {
            return Verdict::Pass;
        }
        sent.push(seen.header.sequence);
        if lost.contains(&sent.len()) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

#[test]
fn both_syns_name_what_both_understand() {
    for (scheme, says) in SCHEMES.into_iter().zip([
        (|o: &Options| o.sack_permitted) as fn(&Options) -> bool,
        |o| o.nak_mode == Some(NakMode::QuasiReliable),
        |o| o.snack_permitted,
    ]) {
        let set: &[_] = if scheme == "nak" {
            &[("nak-mode", "quasi-reliable")]
        } else {
            &[]
        };
        let mut pair = pair(scheme, set);
        pair.connect();
        let syns: Vec<_> = pair.log.iter().filter(|seen| seen.has(Flags::SYN)).collect();
        assert_eq!(syns.len(), 2);
        assert!(syns.iter().all(|syn| says(&syn.header.options)), "{scheme}");
    }
}

/// A peer without the option: duplicates have to do, and no option is sent that was not agreed on.
#[test]
fn without_agreement_losses_are_found_by_duplicates() {
    for scheme in SCHEMES {
        let mut pair = pair(scheme, &[]);
        pair.replace_server(TcpParameters::classic_from_pairs("newreno", &[]).expect("a TCP"));
        let flows = pair.connect();
        pair.rule = lose(&[5]);
        let data = noise(40_000);
        assert_eq!(pair.transfer(flows, &data, secs(5)), data);
        let stats = pair.ends[0].stats(flows.0).expect("a flow");
        assert_eq!((stats.retransmitted_packets, stats.timeouts), (1, 0), "{scheme}");
        let silent = |o: &Options| o.sack.is_empty() && o.nak.is_none() && o.snack.is_none();
        assert!(pair.log.iter().all(|seen| silent(&seen.header.options)));
    }
}

#[test]
fn the_same_losses_are_repaired_without_the_timer_whatever_names_them() {
    for scheme in SCHEMES {
        for timestamps in ["on", "off"] {
            let mut pair = pair(scheme, &[("timestamps", timestamps)]);
            let flows = pair.connect();
            pair.rule = lose(&[12, 14, 15, 19, 40, 41, 42, 60]);
            let data = noise(200_000);
            assert_eq!(pair.transfer(flows, &data, secs(10)), data);
            let stats = pair.ends[0].stats(flows.0).expect("a flow");
            assert_eq!((stats.retransmitted_packets, stats.timeouts), (8, 0), "{scheme}");
            let option = |o: &Options| !o.sack.is_empty() || o.nak.is_some() || o.snack.is_some();
            assert!(pair.log.iter().any(|seen| option(&seen.header.options)));
        }
    }
}

/// An unreliable receiver names each gap once, a quasi-reliable one three times, and one that names gaps on every
/// acknowledgement never leaves a duplicate without.
#[test]
fn mode_and_emission_say_how_often_a_gap_is_named() {
    let named = |set: &[(&str, &str)]| {
        let mut pair = pair("nak", set);
        let flows = pair.connect();
        pair.rule = lose(&[5]);
        let data = noise(14_000);
        assert_eq!(pair.transfer(flows, &data, secs(5)), data);
        pair.count(1, |seen| seen.header.options.nak.is_some())
    };
    assert_eq!(named(&[]), 1);
    assert_eq!(named(&[("nak-mode", "quasi-reliable")]), 3);
    assert_eq!(
        named(&[("nak-emission", "every-ack")]),
        5,
        "6 to 10 arrive above the gap"
    );
}

#[test]
fn an_immediate_snack_is_answered_before_the_third_duplicate() {
    let retransmitted_after = |set: &[(&str, &str)]| {
        let mut pair = pair("snack", set);
        let flows = pair.connect();
        pair.rule = lose(&[2]);
        let data = noise(4 * 1400); // two duplicates only
        assert_eq!(pair.transfer(flows, &data, secs(5)), data);
        pair.ends[0].stats(flows.0).expect("a flow").timeouts
    };
    assert_eq!(retransmitted_after(&[]), 1);
    assert_eq!(retransmitted_after(&[("snack-immediate", "on")]), 0);
}

#[test]
fn reports_of_what_was_never_sent_are_refused() {
    use restp_rivals::tcp::nak::Nak;
    use restp_rivals::tcp::snack::Snack;
    for scheme in ["nak", "snack"] {
        let mut pair = pair(scheme, &[]);
        let (flow, _) = pair.connect();
        pair.rule = Box::new(|seen| {
            if seen.from == 0 {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        pair.write(0, flow, &noise(1400 * 4));
        pair.run_for(Duration::from_millis(1));
        let last = pair
            .log
            .iter()
            .rfind(|seen| seen.from == 1)
            .expect("an answer")
            .header
            .clone();
        let first = last.acknowledgement;
        for (offset, segments) in [(0, 5), (4, 1), (0, 255), (1000, 200)] {
            let options = Options {
                nak: Some(Nak {
                    first: first.wrapping_add(offset * 1400),
                    segments,
                }),
                snack: Some(Snack {
                    offset: offset as u16,
                    size: u16::from(segments),
                    vector: Default::default(),
                }),
                ..Options::default()
            };
            let forged = Header {
                flags: Flags::ACK,
                sequence: last.sequence.wrapping_add(1),
                options,
                ..last.clone()
            };
            pair.forge(1, &forged, b"");
        }
        pair.run_for(Duration::from_millis(20));
        let stats = pair.ends[0].stats(flow).expect("a flow");
        assert_eq!((stats.lost_packets, stats.rejected_packets), (0, 4), "{scheme}");
    }
}

//! Beginning, joining, falling back, and the end (RFC 8684 §3.1, §3.2, §3.3.3, §3.7).

use crate::network::{Net, WIDE, mptcp, noise};
use restp_base::flow::{CloseReason, Flow, PathState, Read};
use restp_base::machine::Event;
use restp_base::time::Duration;
use restp_rivals::mptcp::options::{Capable, Dss, Multipath};
use restp_rivals::tcp::TcpParameters;
use restp_rivals::tcp::wire::Flags;

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn keys_are_exchanged_in_three_segments_and_the_first_data_repeat_them() {
    let mut net = Net::pair(&[], &[WIDE]);
    let flow = net.open(0);
    net.write(0, flow, &noise(3000));
    net.run_for(MS(45));
    let [syn, answer, third, fourth, ..] = &net.log[..] else {
        panic!("four segments")
    };
    assert_eq!(syn.option(), Some(Multipath::Capable(Capable::default())));
    assert_eq!(
        syn.header.options.mss,
        Some(1440),
        "1400 bytes of payload beside a data sequence signal and timestamps"
    );
    let Some(Multipath::Capable(Capable {
        sender: Some(key),
        receiver: None,
        ..
    })) = answer.option()
    else {
        panic!("{answer:?}")
    };
    let Some(Multipath::Capable(Capable {
        sender: Some(own),
        receiver,
        length: None,
        ..
    })) = third.option()
    else {
        panic!("{third:?}")
    };
    assert_eq!(receiver, Some(key));
    assert_ne!(own, key);
    let with_data = Capable {
        checksums: false,
        sender: Some(own),
        receiver,
        length: Some(1400),
    };
    assert_eq!(fourth.option(), Some(Multipath::Capable(with_data)));
    let mapped: Vec<_> = net
        .log
        .iter()
        .filter_map(|seen| match seen.option() {
            Some(Multipath::Data(Dss {
                mapping: Some(mapped),
                ..
            })) => Some((mapped.subflow, mapped.length)),
            _ => None,
        })
        .collect();
    assert_eq!(mapped[..2], [(1401, 1400), (2801, 200)]);
    assert_eq!(net.read_all(1, net.accepted()[0]), noise(3000));
}

#[test]
fn a_lost_third_segment_is_made_up_for_by_the_first_data() {
    let mut net = Net::pair(&[], &[WIDE]);
    net.rule = Box::new(|seen| seen.has(Flags::SYN) || seen.is_data() || seen.from == 1);
    let flow = net.open(0);
    net.run_for(MS(30));
    assert!(net.accepted().is_empty());
    net.write(0, flow, b"hello");
    net.run_for(MS(30));
    assert_eq!(net.read_all(1, net.accepted()[0]), b"hello");
}

#[test]
fn the_second_path_joins_with_the_first_answer_and_both_ends_know_of_it() {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    let flow = net.open(0);
    net.run_for(MS(100));
    assert_eq!(
        net.count(|seen| seen.path == 1),
        0,
        "nobody has acknowledged data yet"
    );
    net.write(0, flow, b"x");
    net.run_for(MS(300));
    let joins: Vec<_> = net.log.iter().filter(|seen| seen.path == 1).collect();
    assert!(matches!(
        joins[0].option(),
        Some(Multipath::Join {
            backup: false,
            address: 1,
            ..
        })
    ));
    assert!(matches!(joins[1].option(), Some(Multipath::JoinAnswer { .. })));
    assert!(matches!(joins[2].option(), Some(Multipath::JoinProof(_))));
    assert!(
        matches!(joins[3].option(), Some(Multipath::Data(_))),
        "the fourth acknowledges the proof"
    );
    for host in [0, 1] {
        let up = net.events[host]
            .iter()
            .filter(|event| matches!(event, Event::Path(_, _, PathState::Up)));
        assert_eq!(up.count(), 2, "host {host}");
        let flow = if host == 0 { flow } else { net.accepted()[0] };
        assert_eq!(net.hosts[host].stats(flow).unwrap().paths.len(), 2);
    }
}

#[test]
fn a_lost_proof_is_retransmitted_until_it_is_acknowledged() {
    let mut net = Net::pair(&[("handshake-rto", "1 s")], &[WIDE, WIDE]);
    let mut left = 1;
    net.rule = Box::new(move |seen| {
        let lost = matches!(seen.option(), Some(Multipath::JoinProof(_))) && left > 0;
        left -= i32::from(lost);
        !lost
    });
    let flow = net.open(0);
    net.write(0, flow, b"x");
    net.run_for(MS(900));
    let up = |net: &Net| {
        net.events[0]
            .iter()
            .filter(|event| matches!(event, Event::Path(..)))
            .count()
    };
    assert_eq!(up(&net), 1);
    net.run_for(MS(400));
    assert_eq!(up(&net), 2);
}

#[test]
fn a_join_with_a_wrong_proof_is_refused_and_the_connection_lives() {
    for answer in [true, false] {
        let mut net = Net::pair(&[], &[WIDE, WIDE]);
        net.rule = Box::new(move |seen| {
            match &mut seen.header.options.multipath {
                Some(Multipath::JoinAnswer { proof, .. }) if answer => proof[7] ^= 1,
                Some(Multipath::JoinProof(proof)) if !answer => proof[19] ^= 1,
                _ => {}
            }
            true
        });
        let flow = net.open(0);
        net.write(0, flow, b"x");
        net.run_for(MS(500));
        let resets = net.count(|seen| seen.path == 1 && seen.has(Flags::RST));
        assert!(resets >= 1, "wrong answer {answer}");
        let got = net.transfer(flow, &noise(100_000), MS(3000));
        assert_eq!(got.len(), 100_001);
        assert_eq!(net.count(|seen| seen.path == 1 && seen.is_data()), 0);
        assert!(net.closed(0).is_none() && net.closed(1).is_none());
    }
}

#[test]
fn an_unknown_token_is_refused_and_counted() {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    net.rule = Box::new(|seen| {
        if let Some(Multipath::Join { token, .. }) = &mut seen.header.options.multipath {
            token[0] ^= 1;
        }
        true
    });
    let flow = net.open(0);
    net.write(0, flow, b"x");
    net.run_for(MS(500));
    assert_eq!(net.hosts[1].dropped_segments(), 1);
    assert_eq!(
        net.count(|seen| seen.path == 1 && seen.from == 1 && seen.has(Flags::RST)),
        1
    );
    assert!(net.closed(0).is_none(), "the first path carries on");
}

#[test]
fn a_peer_without_mptcp_gets_plain_tcp() {
    let data = noise(200_000);
    for (client, server) in [
        (
            mptcp(None, &[]),
            TcpParameters::classic_from_pairs("sack", &[]).unwrap(),
        ),
        (
            TcpParameters::classic_from_pairs("sack", &[]).unwrap(),
            mptcp(None, &[]),
        ),
    ] {
        let several = client.multipath.is_some();
        let lines = vec![(0, WIDE), (0, WIDE)];
        let lines = if several { lines } else { lines[..1].to_vec() };
        let mut net = Net::new(vec![client], server, lines);
        let flow = net.open(0);
        let got = net.transfer(flow, &data, MS(5000));
        assert!(got == data);
        assert_eq!(
            net.count(|seen| seen.option().is_some() && !seen.has(Flags::SYN)),
            0
        );
        assert_eq!(net.count(|seen| seen.path == 1), 0);
        net.hosts[0].finish(net.now, flow);
        net.run_for(MS(100));
        let accepted = net.accepted()[0];
        assert_eq!(net.hosts[1].read(net.now, accepted), Read::End);
    }
}

#[test]
fn an_answer_whose_options_were_removed_on_the_way_means_plain_tcp_as_well() {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    net.rule = Box::new(|seen| {
        seen.header.options.multipath = None;
        true
    });
    let flow = net.open(0);
    let data = noise(50_000);
    assert!(net.transfer(flow, &data, MS(3000)) == data);
    let error = net.hosts[0]
        .add_path(net.now, flow, Net::path(1), false)
        .expect_err("one path");
    assert!(error.to_string().contains("mptcp"), "{error}");
}

#[test]
fn both_directions_end_with_data_fin_and_then_every_subflow() {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    let flow = net.open(0);
    net.write(0, flow, &noise(10_000));
    net.run_for(MS(300));
    net.hosts[0].finish(net.now, flow);
    net.run_for(MS(100));
    let accepted = net.accepted()[0];
    assert_eq!(net.read_all(1, accepted).len(), 10_000);
    assert_eq!(net.hosts[1].read(net.now, accepted), Read::End);
    assert_eq!(
        net.count(|seen| seen.has(Flags::FIN)),
        0,
        "a subflow ends behind the connection"
    );
    net.write(1, accepted, b"bye");
    net.hosts[1].finish(net.now, accepted);
    net.run_for(MS(500));
    assert_eq!(net.read_all(0, flow), b"bye");
    for host in [0, 1] {
        assert_eq!(net.closed(host), Some(&CloseReason::Finished), "host {host}");
    }
    let ends = |from| net.count(|seen| seen.from == from && seen.has(Flags::FIN));
    assert_eq!((ends(0), ends(1)), (2, 2));
    net.hosts[0].release(net.now, flow);
    net.hosts[1].release(net.now, accepted);
    net.run_for(Duration::from_secs(70));
    assert_eq!((net.hosts[0].connections(), net.hosts[1].connections()), (0, 0));
}

#[test]
fn breaking_off_resets_every_subflow() {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    let flow = net.open(0);
    net.write(0, flow, b"x");
    net.run_for(MS(300));
    net.hosts[0].abort(net.now, flow);
    net.run_for(MS(100));
    assert_eq!(net.closed(0), Some(&CloseReason::Aborted));
    assert_eq!(net.closed(1), Some(&CloseReason::Reset));
    assert_eq!(net.count(|seen| seen.has(Flags::RST)), 2);
}

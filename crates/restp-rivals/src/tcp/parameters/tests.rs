//! Every key does something, and errors name the way out.

use super::keys::{CHOICES, NUMBERS};
use super::*;
use restp_base::time::Duration;

fn refused(name: &str, set: &[(&str, &str)]) -> ParameterError {
    TcpParameters::classic_from_pairs(name, set).expect_err("refused")
}

#[test]
fn every_key_can_be_set_and_none_is_forgotten() {
    let values = [
        ("congestion", "cubic"),
        ("ack", "positive+sack"),
        ("recovery", "pipe"),
        ("segment", "1000 B"),
        ("window", "100 segments"),
        ("window_scaling", "off"),
        ("timestamps", "on"),
        ("ack-every", "1 packet"),
        ("ack-delay", "200 ms"),
        ("ack-quick", "16 packets"),
        ("tail-loss-probe", "on"),
        ("rate-reduction", "on"),
        ("ecn", "on"),
        ("sack-blocks", "3"),
        ("lost-repeats", "timer"),
        ("initial-window", "2 segments"),
        ("initial-threshold", "65535 B"),
        ("growth", "acks"),
        ("rto-floor", "1 s"),
        ("rto-ceiling", "90 s"),
        ("data-attempts", "9"),
        ("handshake-rto", "1 s"),
        ("handshake-attempts", "2"),
        ("send-buffer", "64 KiB"),
        ("fast-open", "on"),
    ];
    let others = [
        ("nak", "nak-mode", "quasi-reliable"),
        ("nak", "nak-copies", "5"),
        ("nak", "nak-emission", "every-ack"),
        ("snack", "snack-immediate", "on"),
        ("snack", "re-snack", "on"),
    ];
    for (name, key, value) in others {
        let set = TcpParameters::classic_from_pairs(name, &[(key, value)]).unwrap();
        assert_ne!(
            set,
            TcpParameters::classic_from_pairs(name, &[]).unwrap(),
            "{key}"
        );
        assert!(
            refused("sack", &[(key, value)])
                .message
                .contains(&format!("positive+{name}"))
        );
    }
    let own = [
        ("none", "flight-limit", "32 packets"),
        ("bbr", "random-loss", "2"),
        ("bbr", "bbr-draft", "on"),
        ("rate", "rate", "2 Mbit/s"),
        ("cubic", "hystart", "linux"),
        ("cubic", "cubic", "linux"),
        ("sack", "reordering", "rack"),
        ("sack", "dsack", "on"),
    ];
    assert_eq!(
        values.len() + others.len() + own.len(),
        CHOICES.len() + NUMBERS.len()
    );
    for (name, key, value) in own {
        let set = TcpParameters::classic_from_pairs(name, &[(key, value)]).unwrap();
        assert_ne!(
            set,
            TcpParameters::classic_from_pairs(name, &[]).unwrap(),
            "{key}"
        );
    }
    let all = TcpParameters::classic_from_pairs("newreno", &values).unwrap();
    for (key, value) in values {
        let without: Vec<_> = values.into_iter().filter(|(other, _)| *other != key).collect();
        assert_ne!(
            TcpParameters::classic_from_pairs("newreno", &without).as_ref(),
            Ok(&all),
            "{key} = {value} changes nothing"
        );
    }
    assert_eq!((all.ack.every, all.detail), (1, Detail::Sack { max_blocks: 3 }));
    assert_eq!(all.handshake.rto, Duration::from_secs(1));
}

#[test]
fn choices_count_before_numbers_whatever_their_order() {
    let set = [("initial-window", "3 segments"), ("congestion", "newreno")];
    let CongestionChoice::NewReno(params) = TcpParameters::classic_from_pairs("cubic", &set)
        .unwrap()
        .congestion
    else {
        panic!("not NewReno")
    };
    assert_eq!(params.initial_window_segments, 3);
}

#[test]
fn errors_name_the_key_the_value_and_the_way_out() {
    for (set, key, says) in [
        ([("pacing", "on")], "pacing", "congestion, ack, recovery, segment"),
        ([("congestion", "newrenno")], "congestion", "newreno, bic, cubic"),
        ([("ack", "delayed+nak")], "ack", "positive, positive+nak"),
        ([("segment", "1000")], "segment", "no unit"),
        ([("segment", "0 B")], "segment", "1 to 65000"),
        ([("recovery", "pipe")], "recovery", "positive+sack"),
        ([("sack-blocks", "3")], "sack-blocks", "positive+sack"),
        ([("lost-repeats", "timer")], "lost-repeats", "pipe"),
        ([("dsack", "on")], "dsack", "positive+sack"),
        ([("reordering", "rack")], "reordering", "pipe"),
        ([("hystart", "linux")], "hystart", "cubic"),
        ([("cubic", "linux")], "cubic", "cubic"),
        ([("flight-limit", "3 packets")], "flight-limit", "none"),
        ([("data-attempts", "many")], "data-attempts", "\"many\""),
        ([("rto-floor", "90 s")], "rto-floor", "rto-ceiling"),
    ] {
        let error = refused("newreno", &set);
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let error = refused("snack", &[("re-snack", "on"), ("lost-repeats", "timer")]);
    assert_eq!(error.key, "lost-repeats", "{error}");
    let error = refused("none", &[("growth", "acks")]);
    assert!(error.message.contains("\"none\" has no growth"), "{error}");
    assert!(
        refused("vegass", &[])
            .message
            .contains("\"vegass\" is no choice for transport")
    );
}

#[test]
fn a_current_tcp_is_named_by_its_congestion_control_alone() {
    for name in ["cubic", "newreno", "bbr1", "bbr3", "westwood+"] {
        let current = TcpParameters::from_pairs(name, &[]).expect("a current TCP");
        let sack = matches!(current.detail, Detail::Sack { .. });
        assert!(sack && current.timestamps && current.tail_loss_probe, "{name}");
    }
    let error = TcpParameters::from_pairs("snack", &[]).expect_err("classic");
    assert!(error.message.contains("classic-tcp:snack"), "{error}");
    let error = TcpParameters::from_pairs("bbr", &[]).expect_err("which one?");
    assert!(
        error.message.contains("write tcp:bbr1") && error.message.contains("tcp:bbr3"),
        "{error}"
    );
    let error = TcpParameters::from_pairs("cubci", &[]).expect_err("a typo");
    assert!(error.message.ends_with("did you mean \"cubic\"?"), "{error}");
    let error = TcpParameters::from_pairs("cubic", &[("lost-repeats", "timer")]).expect_err("contradiction");
    assert_eq!(error.key, "reordering", "{error}");
    assert!(TcpParameters::classic_names().any(|name| name == "snack"));
}

/// A comparison with CUBIC is one with what neighbours run.
#[test]
fn the_current_cubic_is_that_of_linux() {
    let with = |set: &[(&str, &str)]| TcpParameters::from_pairs("cubic", set).unwrap();
    for key in ["cubic", "hystart"] {
        assert_eq!(with(&[(key, "linux")]), with(&[]), "{key}");
    }
    assert_ne!(with(&[("cubic", "rfc9438")]), with(&[]));
}

/// It took the largest that there is, without a word.
#[test]
fn a_send_buffer_that_is_too_large_is_refused() {
    for (bytes, takes) in [
        ("1 B", true),
        ("4294967295 B", true),
        ("4294967296 B", false),
        ("0 B", false),
    ] {
        let taken = TcpParameters::classic_from_pairs("newreno", &[("send-buffer", bytes)]);
        assert_eq!(taken.is_ok(), takes, "{bytes}");
    }
    let error = refused("newreno", &[("send-buffer", "5 GiB")]);
    assert!(
        error.message.contains("send-buffer") && error.message.contains("at most"),
        "{error}"
    );
}

use super::*;
use crate::composition::every::combinations;
use crate::composition::{PRESETS, Preset};
use crate::wire::Header;
use restp_services::reliability::FecCode;

fn preset(name: &str) -> Composition {
    Preset::named(name).unwrap().composition()
}

#[test]
fn presets_have_the_bits_of_section_17() {
    const ARQ_FEC: ErrorControl = ErrorControl::from_bits(0x50);
    const ARQ_SAK: ErrorControl = ErrorControl::from_bits(0x44);
    use ErrorControl as E;
    let rows = [
        (
            "default",
            Order::Full,
            Setup::ThreeWay,
            ARQ_SAK,
            Paths::Single,
            1,
            1,
        ),
        (
            "cubic",
            Order::Full,
            Setup::ThreeWay,
            ARQ_SAK,
            Paths::Single,
            3,
            1,
        ),
        (
            "resilient",
            Order::Full,
            Setup::ThreeWay,
            ARQ_SAK,
            Paths::Single,
            14,
            1,
        ),
        (
            "voice",
            Order::Partial,
            Setup::ThreeWay,
            ARQ_SAK.with(E::FEC),
            Paths::Single,
            1,
            1,
        ),
        (
            "video",
            Order::Partial,
            Setup::ThreeWay,
            ARQ_SAK.with(E::FEC),
            Paths::Single,
            1,
            1,
        ),
        (
            "unrel",
            Order::Unordered,
            Setup::Connectionless,
            E::NONE,
            Paths::Single,
            0,
            0,
        ),
        (
            "3wh-arq",
            Order::Full,
            Setup::ThreeWay,
            E::ARQ,
            Paths::Single,
            1,
            1,
        ),
        (
            "3wh-harq",
            Order::Full,
            Setup::ThreeWay,
            ARQ_FEC,
            Paths::Single,
            1,
            1,
        ),
        (
            "opt-arq",
            Order::Full,
            Setup::Opportunistic,
            E::ARQ,
            Paths::Single,
            1,
            1,
        ),
        (
            "multipath",
            Order::Full,
            Setup::ThreeWay,
            ARQ_SAK,
            Paths::Spreading(Scheduler::Undeclared),
            14,
            1,
        ),
        (
            "mp-opt",
            Order::Full,
            Setup::Opportunistic,
            E::ARQ,
            Paths::HotStandby,
            1,
            1,
        ),
        (
            "outage",
            Order::Full,
            Setup::ThreeWay,
            E::ARQ,
            Paths::Single,
            1,
            1,
        ),
        (
            "ful-arq",
            Order::Full,
            Setup::ThreeWay,
            ARQ_SAK,
            Paths::Single,
            2,
            1,
        ),
        (
            "par-arq",
            Order::Partial,
            Setup::ThreeWay,
            ARQ_SAK,
            Paths::Single,
            2,
            1,
        ),
        (
            "arq-only",
            Order::Full,
            Setup::ThreeWay,
            E::ARQ,
            Paths::Single,
            0,
            1,
        ),
        (
            "geo-spread",
            Order::Full,
            Setup::ThreeWay,
            E::ARQ,
            Paths::Spreading(Scheduler::RoundRobin),
            1,
            1,
        ),
    ];
    assert_eq!(rows.len(), PRESETS.len());
    for (name, order, setup, error, paths, congestion, flow_control) in rows {
        let bits = Services::of(&preset(name));
        let framing = bits.framing;
        let expected = Services {
            order,
            setup,
            error,
            paths,
            shared_numbers: false,
            congestion,
            flow_control,
            framing,
        };
        assert_eq!(bits, expected, "{name}");
    }
}

/// ResTP §23: the header, bytes of payload behind it, and the composition it belongs to (a preset with changes).
/// All of them keep frames apart.
type Vector = (
    &'static str,
    usize,
    &'static str,
    &'static [(&'static str, &'static str)],
);
const VECTORS: &[Vector] = &[
    ("03000000 00010000 C3500050", 0, "unrel", &[]),
    (
        "05000020 00010000 C3500050 81080000 CBF43926",
        9,
        "unrel",
        &[("crc", "on")],
    ),
    (
        "06025040 01110000 C3500050 00400000 00000000 00000000",
        0,
        "3wh-arq",
        &[],
    ),
    (
        "06026840 01110000 C3500050 00400000 00000000 00000000",
        0,
        "opt-arq",
        &[],
    ),
    (
        "08024840 01110000 C3500050 00400000 A0A1A2A3 A4A5A6A7 00000000 00000000",
        0,
        "opt-arq",
        &[],
    ),
    (
        "08024840 01110000 C3500050 00400000 A0A1A2A3 A4A5A6A7 00000001 00000000",
        1,
        "opt-arq",
        &[],
    ),
    (
        "0A105044 01110000 0050C350 00400000 00000001 0000000A 00000011 00000011 0000000E 0000000F",
        0,
        "3wh-arq",
        &[("ack", "positive+sack")],
    ),
    (
        "07105048 01110000 0050C350 00400000 00000001 0000000A 00000004",
        0,
        "3wh-arq",
        &[("ack", "positive+snack")],
    ),
    (
        "0810504C 01110000 0050C350 00400000 00000001 0000000A 00000004 D0000000",
        0,
        "3wh-arq",
        &[("ack", "positive+snack")],
    ),
    (
        "05001090 00010000 C3500050 01000003 00000014",
        4,
        "unrel",
        &[("connection", "three-way"), ("reliability", "quasi")],
    ),
    (
        "07105050 01110000 0050C350 00400000 01000003 00000001 00000015",
        0,
        "3wh-harq",
        &[],
    ),
    (
        "09025040 E1110400 C3500050 00400000 01000000 01020304 05060708 00000000 00000000",
        0,
        "geo-spread",
        &[],
    ),
    (
        "09005040 E1120200 C3500050 00400000 40000001 000003E8 00000005 00000005 00000000",
        1,
        "geo-spread",
        &[],
    ),
];

#[test]
fn the_vectors_of_section_23_carry_the_bits_of_their_compositions() {
    for (hex, payload, name, changes) in VECTORS {
        let words = hex.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap());
        let bytes: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        let (header, _) = Header::parse(&bytes, bytes.len() + payload).unwrap();
        let mut composition = Composition::from_pairs(preset(name), changes.iter().copied()).unwrap();
        composition.framing = Framing::Fixed;
        assert!(
            header.services.agree(&Services::of(&composition)),
            "{hex}: {:?}",
            header.services
        );
    }
}

#[test]
fn the_responder_echoes_the_bits_of_every_valid_combination() {
    let mut locals: Vec<_> = PRESETS.iter().map(Preset::composition).collect();
    locals.retain(|local| local.clone().check().is_ok());
    let echoes = |congestion: &str| {
        let mut valid = 0;
        combinations(&[congestion], |composition| {
            let Ok(asked) = composition.clone().check() else {
                return;
            };
            valid += 1;
            for local in &locals {
                let bits = Services::of(&asked);
                let own = accept(bits, local).unwrap_or_else(|refusal| panic!("{composition:?}: {refusal}"));
                assert_eq!(Services::of(&own), bits, "{composition:?}");
            }
        });
        assert!(valid > 30, "{valid}");
    };
    std::thread::scope(|threads| {
        for congestion in ["none", "newreno", "cubic"] {
            threads.spawn(move || echoes(congestion));
        }
    });
}

#[test]
fn whatever_bits_arrive_they_are_echoed_or_refused() {
    let local = Composition::default();
    let mut accepted = 0;
    for_all_bits(|bits| {
        if let Ok(own) = accept(bits, &local) {
            accepted += 1;
            assert!(Services::of(&own).agree(&bits), "{bits:?}");
        }
    });
    assert!(accepted > 20, "{accepted}");
}

#[test]
fn bits_that_mean_nothing_here_are_refused_with_a_sentence() {
    let said = |bits| accept(bits, &Composition::default()).unwrap_err().to_string();
    let good = Services::of(&Composition::default());
    let sentence = said(Services {
        flow_control: 7,
        ..good
    });
    assert_eq!(
        sentence,
        "FC = 7 in the peer's header stands for no service here; 0 is none, 1 is window, 2 is window with streams"
    );
    let sentence = said(Services {
        congestion: 16,
        ..good
    });
    assert!(sentence.starts_with("Cong = 16"), "{sentence}");
    let sentence = said(Services {
        error: ErrorControl::ARQ | ErrorControl::FEC,
        order: Order::Partial,
        ..good
    });
    assert!(sentence.contains("partial-needs-selective"), "{sentence}");
}

/// ARQ, FEC and PAR at once: what can be in time is rebuilt or retransmitted, whatever code this end would choose itself.
#[test]
fn all_of_arq_fec_and_par_mean_partial_reliability_with_a_sliding_window() {
    let offer = Composition::from_pairs(preset("par-arq"), [("reliability", "partial+fec")]).unwrap();
    assert_eq!(offer.fec.code, FecCode::Rlc);
    let bits = Services::of(&offer);
    assert!(bits.error.has(ErrorControl::ARQ | ErrorControl::FEC) && bits.order == Order::Partial);
    for local in ["par-arq", "3wh-harq", "default"] {
        let accepted = accept(bits, &preset(local)).expect("valid");
        assert_eq!(
            (accepted.reliability, accepted.fec.code),
            (Reliability::PartialFec, FecCode::Rlc),
            "{local}"
        );
    }
}

#[test]
fn numbers_and_policy_are_the_responders_own() {
    let local = Composition::from_pairs(
        preset("cubic"),
        [
            ("segment", "1200 B"),
            ("window", "64 segments"),
            ("sack-blocks", "2"),
            ("initial-window", "4 segments"),
            ("ack-every", "1 packets"),
            ("rto-floor", "1 s"),
        ],
    )
    .unwrap();
    let asked = Services::of(&preset("cubic"));
    assert_eq!(*accept(asked, &local).unwrap(), local);

    let plain = accept(Services::of(&preset("3wh-arq")), &local).unwrap();
    assert_eq!(plain.recovery, RecoveryChoice::DuplicateAck);
    assert_eq!(plain.flow_control, local.flow_control);
    assert!(plain.pacing && plain.ecn);
    let datagrams = accept(Services::of(&preset("unrel")), &local).unwrap();
    assert_eq!(datagrams.recovery, RecoveryChoice::Timer);
    assert!(!datagrams.pacing && !datagrams.ecn);
}

#[test]
fn fast_open_is_the_openers_own_policy_and_has_no_bits() {
    let fast = Composition {
        establishment: Establishment::FastOpen,
        ..preset("opt-arq")
    };
    let opportunistic = preset("opt-arq");
    assert_eq!(Services::of(&fast), Services::of(&opportunistic));
    for local in [&fast, &opportunistic] {
        assert_eq!(*accept(Services::of(&fast), local).unwrap(), *local);
    }
    let elsewhere = accept(Services::of(&fast), &preset("3wh-arq")).unwrap();
    assert_eq!(elsewhere.establishment, Establishment::Opportunistic);
}

fn for_all_bits(mut visit: impl FnMut(Services)) {
    use Scheduler::*;
    let spread = Paths::Spreading(Undeclared);
    for order in [Order::Unordered, Order::Partial, Order::Full] {
        for setup in [Setup::Connectionless, Setup::ThreeWay, Setup::Opportunistic] {
            for (paths, shared_numbers) in [
                (Paths::Single, false),
                (Paths::HotStandby, false),
                (spread, false),
                (Paths::HotStandby, true),
                (spread, true),
                (Paths::Spreading(RoundRobin), false),
                (Paths::Spreading(FastestRtt), true),
            ] {
                for (congestion, flow_control) in
                    [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (3, 1), (9, 2), (16, 1)]
                {
                    for framing in [wire::Framing::Fixed, wire::Framing::Coalesce] {
                        for error in (0..=255).map(ErrorControl::from_bits) {
                            visit(Services {
                                order,
                                setup,
                                error,
                                paths,
                                shared_numbers,
                                congestion,
                                flow_control,
                                framing,
                            });
                        }
                    }
                }
            }
        }
    }
}

/// OP-6: the field counts twice.
#[test]
fn a_congestion_code_means_what_it_means_on_one_path_or_on_several() {
    let local = preset("geo-spread");
    let mut bits = Services::of(&local);
    for (code, one, several) in [
        (1, "newreno", "newreno"),
        (2, "bic", "coupled"),
        (3, "cubic", "ewtcp"),
    ] {
        bits.congestion = code;
        assert_eq!(accept(bits, &local).unwrap().congestion.name(), several);
        let single = Services {
            paths: Paths::Single,
            ..bits
        };
        assert_eq!(accept(single, &local).unwrap().congestion.name(), one);
    }
}

#[test]
fn a_peer_that_names_a_rate_algorithm_makes_us_pace() {
    let mut local = Preset::named("3wh-arq").unwrap().composition();
    let mut bits = Services::of(&local.clone().check().unwrap());
    bits.congestion = 14;
    let accepted = accept(bits, &local).unwrap();
    assert_eq!((accepted.congestion.name(), accepted.pacing), ("bbr", true));
    local.pacing = false;
    bits.congestion = 1;
    assert!(!accept(bits, &local).unwrap().pacing);
}

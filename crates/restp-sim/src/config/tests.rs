//! What the keys of a link mean, and how a typo is answered.

use super::Fault;
use crate::error_model::{GilbertElliott, Jitter, LossUnit};
use crate::police::Police;
use crate::rate::{DeliveryTrace, Walk};
use crate::{Codel, DirectionSpec, ErrorModel, FqCodel, LinkRate, MarkThreshold, Queue, QueueLimit, Red};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use serde::Deserialize;
use std::io;
use toml::de::DeTable;

crate::link_table! {
    struct Cable {
        #[serde(rename = "name")]
        _name: String,
    }
}

#[derive(Deserialize)]
struct File {
    cable: Vec<Cable>,
}

/// Files that links may name.
fn recordings(name: &str) -> io::Result<Box<dyn io::Read>> {
    match name {
        "lte.down" => Ok(Box::new(&b"0\n4\n10\n"[..])),
        "binary" => Ok(Box::new(&[0xff, 0xfe][..])),
        "endless" => Ok(Box::new(io::repeat(b'7'))),
        "backwards" => Ok(Box::new(&b"7\n3\n"[..])),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The directions of a cable called `a` with these `lines`, or line, key and sentence about them.
fn directions(lines: &str) -> Result<[DirectionSpec; 2], String> {
    let text = format!("[[cable]]\nname = \"a\"\n{lines}\n");
    let root = DeTable::parse(&text).expect("a test writes TOML");
    let file = File::deserialize(toml::de::Deserializer::from(root.clone()));
    file.map_err(Fault::from)
        .and_then(|file| file.cable[0].wire().directions(&recordings))
        .map_err(|fault| {
            let (line, key) = (fault.line(&text), fault.key(root.get_ref()));
            format!("line {line}: {key}: {}", fault.message)
        })
}

#[track_caller]
fn refused(lines: &str, parts: &[&str]) {
    let sentence = directions(lines).expect_err(lines);
    for part in parts {
        assert!(sentence.contains(part), "{lines}: no {part:?} in: {sentence}");
    }
}

#[test]
fn every_key_has_its_meaning() {
    let [forward, reverse] = directions(
        r#"
        rate = "50 Mbit/s"
        delay = "10 ms"
        reverse_rate = "5 Mbit/s"
        reverse_delay = "30 ms"
        queue = { drop_tail = "64 KiB" }
        loss = { burst = { rate = 0.01, packets = [1, 4] }, during = ["20 s..30 s"], direction = "both" }
        outage = ["20 s..30 s"]
        police = { rate = "20 Mbit/s", burst = "64 KiB", direction = "reverse" }
        jitter = { delay = "3 ms", reorder = true }
        reorder = { rate = 0.1, delay = "2 ms" }
        duplicate = { rate = 0.2, direction = "reverse" }
        corrupt = { rate = 0.3, direction = "both" }
        mark = "20 packets"
        overhead = "28 B"
        "#,
    )
    .unwrap();
    assert_eq!((forward.overhead_bytes, reverse.overhead_bytes), (28, 28));
    let rates = [50_000_000, 5_000_000].map(|bps| Some(Rate::from_bps(bps).into()));
    assert_eq!([&forward.rate, &reverse.rate].map(Clone::clone), rates);
    assert_eq!(
        [forward.delay, reverse.delay],
        [10, 30].map(Duration::from_millis)
    );
    assert_eq!(forward.queue, QueueLimit::Bytes(65536).into());
    assert_eq!((forward.loss.len(), &forward.loss), (1, &reverse.loss));
    let outage = Time::ZERO + Duration::from_secs(20)..Time::ZERO + Duration::from_secs(30);
    for times in [
        &forward.outage,
        &reverse.outage,
        &forward.loss_during,
        &reverse.loss_during,
    ] {
        assert_eq!(times, std::slice::from_ref(&outage));
    }
    let police = Police {
        rate: Rate::from_bps(20_000_000),
        burst_bytes: 65536,
    };
    assert_eq!((forward.police, reverse.police), (None, Some(police)));
    let jitter = Jitter {
        most: Duration::from_millis(3),
        reorder: true,
    };
    assert_eq!((forward.jitter, reverse.jitter), (Some(jitter), None));
    let reorder = forward.reorder.unwrap();
    assert_eq!(
        (reorder.probability, reorder.extra),
        (0.1, Duration::from_millis(2))
    );
    assert_eq!(reverse.reorder, None);
    assert_eq!(
        (forward.duplicate, reverse.duplicate.unwrap().probability),
        (None, 0.2)
    );
    assert_eq!(
        (forward.corrupt.unwrap().probability, reverse.corrupt),
        (0.3, forward.corrupt)
    );
    assert_eq!(forward.mark, Some(MarkThreshold::Packets(20)));
    assert_eq!(forward.check(), Ok(()));
}

#[test]
fn what_is_left_out_is_a_perfect_wire_with_a_queue_to_resolve() {
    let perfect = DirectionSpec {
        queue: QueueLimit::Bdp.into(),
        ..DirectionSpec::default()
    };
    assert_eq!(directions("").unwrap(), [perfect.clone(), perfect]);
    let [forward, reverse] = directions("rate = \"1 Mbit/s\"\ndelay = \"1 ms\"").unwrap();
    assert_eq!(forward, reverse);
}

#[test]
fn a_rate_may_change_in_one_of_three_ways_and_differ_by_direction() {
    let mbit = |n: u64| Rate::from_bps(n * 1_000_000);
    let [forward, reverse] = directions(
        "rate = { steps = [[\"0 s\", \"10 Mbit/s\"], [\"1.5 s\", \"0 bit/s\"], [\"2 s\", \"4 Mbit/s\"]] }\n\
         reverse_rate = { trace = \"lte.down\" }",
    )
    .unwrap();
    let steps = [(0, mbit(10)), (1500, mbit(0)), (2000, mbit(4))]
        .map(|(at, rate)| (Time::ZERO + Duration::from_millis(at), rate));
    assert_eq!(forward.rate, Some(LinkRate::Steps(steps.to_vec())));
    let recording = DeliveryTrace::parse("0\n4\n10\n").unwrap();
    assert_eq!(reverse.rate, Some(LinkRate::Trace(recording)));
    let walk = "rate = { walk = { min = \"1 Mbit/s\", max = \"9 Mbit/s\", step = \"2 Mbit/s\", every = \"50 ms\" } }";
    let [forward, reverse] = directions(walk).unwrap();
    let walk = LinkRate::Walk(Walk {
        min: mbit(1),
        max: mbit(9),
        step: mbit(2),
        every: Duration::from_millis(50),
    });
    assert_eq!([forward.rate, reverse.rate], [Some(walk.clone()), Some(walk)]);
}

#[test]
fn every_loss_model_can_be_written() {
    let loss = |text: &str| directions(&format!("loss = {{ {text} }}")).unwrap();
    let [forward, reverse] = loss("rate = 0.01");
    assert!(matches!(forward.loss[..], [ErrorModel::Rate(rate)]
        if rate.probability == 0.01 && rate.unit == LossUnit::Packet));
    assert!(reverse.loss.is_empty());
    assert!(
        matches!(loss("rate = 1e-6, unit = \"bit\"")[0].loss[..], [ErrorModel::Rate(rate)]
        if rate.unit == LossUnit::Bit)
    );
    assert!(
        matches!(&loss("burst = { rate = 0.1, packets = [1, 4] }")[0].loss[..], [ErrorModel::Burst(burst)]
        if burst.sizes == (1..=4))
    );
    assert!(
        matches!(&loss("drop = [1, 7]")[0].loss[..], [ErrorModel::Scripted(script)]
        if script.drop == [1, 7])
    );
    let [forward, reverse] =
        loss("gilbert_elliott = { good_to_bad = 0.01, bad_to_good = 0.3 }, direction = \"reverse\"");
    assert!(forward.loss.is_empty());
    let model = GilbertElliott {
        p: 0.01,
        r: 0.3,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    assert_eq!(reverse.loss, [ErrorModel::GilbertElliott(model)]);
    assert_eq!(loss("rate = 0.1, drop = [2]")[0].loss.len(), 2);
}

#[test]
fn every_queue_discipline_can_be_written() {
    let queue = |text: &str| directions(&format!("queue = {{ {text} }}")).unwrap()[1].queue;
    assert_eq!(queue("red = {}"), Queue::Red(Red::default()));
    assert_eq!(queue("codel = {}"), Queue::Codel(Codel::default()));
    assert_eq!(queue("fq_codel = {}"), Queue::FqCodel(FqCodel::default()));
    let red = "red = { limit = \"100 packets\", min = \"10 kB\", max = \"30 kB\", max_p = 0.02, weight = 0.01, \
               gentle = false, ecn = false }";
    assert_eq!(
        queue(red),
        Queue::Red(Red {
            limit: QueueLimit::Packets(100),
            min: MarkThreshold::Bytes(10_000),
            max: MarkThreshold::Bytes(30_000),
            max_p: 0.02,
            weight: 0.01,
            gentle: false,
            ecn: false,
        })
    );
    let codel = Codel {
        limit: QueueLimit::Bdp,
        target: Duration::from_millis(10),
        interval: Duration::from_millis(200),
        ecn: false,
        ..Codel::default()
    };
    let times = "limit = \"bdp\", target = \"10 ms\", interval = \"200 ms\", ecn = false";
    assert_eq!(queue(&format!("codel = {{ {times} }}")), Queue::Codel(codel));
    assert_eq!(
        queue(&format!("fq_codel = {{ {times}, quantum = 300, queues = 16 }}")),
        Queue::FqCodel(FqCodel {
            codel,
            quantum: 300,
            queues: 16,
            ..FqCodel::default()
        })
    );
}

#[test]
fn a_typo_is_answered_with_line_key_rule_and_way_out() {
    for (line, parts) in [
        (
            "dealy = \"45 ms\"",
            &["cable.a.dealy", "name", "queue", "did you mean \"delay\"?"][..],
        ),
        (
            "rate = \"10\"",
            &["cable.a.rate", "\"10\"", "no unit", "kbit/s, Mbit/s"],
        ),
        (
            "rate = \"0 bit/s\"",
            &["cable.a.rate", "0 bit/s", "more than zero"],
        ),
        (
            "rate = 10",
            &["cable.a.rate", "\"10\" has no unit", "\"10 Mbit/s\"", "Gbit/s"],
        ),
        (
            "rate = true",
            &["cable.a.rate", "boolean", "\"10 Mbit/s\"", "steps, walk or trace"],
        ),
        ("rate = {}", &["cable.a.rate", "in one way", "one of them only"]),
        (
            "rate = { steps = [], trace = \"lte.down\" }",
            &["cable.a.rate", "in one way"],
        ),
        (
            "rate = { stebs = [] }",
            &["cable.a.rate.stebs", "walk", "did you mean \"steps\"?"],
        ),
        (
            "rate = { steps = [[\"0 s\", \"10\"]] }",
            &["cable.a.rate.steps[0][1]", "\"10\" has no unit"],
        ),
        (
            "rate = { steps = [[\"1 s\", \"1 Mbit/s\"]] }",
            &["cable.a.rate.steps", "at 1 s", "first step is at 0 s"],
        ),
        (
            "rate = { steps = [[\"0 s\", \"0 bit/s\"]] }",
            &["cable.a.rate.steps", "above zero"],
        ),
        (
            "rate = { walk = { min = \"9 Mbit/s\", max = \"1 Mbit/s\", step = \"1 Mbit/s\", every = \"1 s\" } }",
            &[
                "cable.a.rate.walk",
                "between 9 Mbit/s and 1 Mbit/s",
                "min below max",
            ],
        ),
        (
            "rate = { trace = \"nowhere\" }",
            &["cable.a.rate.trace", "\"nowhere\" cannot be read", "not found"],
        ),
        (
            "rate = { trace = \"binary\" }",
            &["cable.a.rate.trace", "\"binary\" cannot be read"],
        ),
        (
            "reverse_rate = { trace = \"endless\" }",
            &["cable.a.reverse_rate.trace", "longer than 32 MiB"],
        ),
        (
            "rate = { trace = \"backwards\" }",
            &["\"backwards\", line 2: 3 ms comes after 7 ms"],
        ),
        (
            "overhead = \"2 packets\"",
            &["cable.a.overhead", "\"2 packets\"", "28 B"],
        ),
        (
            "delay = 1.5",
            &["cable.a.delay", "\"1.5\" has no unit", "\"10 ms\"", "us"],
        ),
        ("delay = -3", &["cable.a.delay", "\"-3\" must not be negative"]),
        ("delay = true", &["cable.a.delay", "boolean", "\"10 ms\""]),
        ("outage = 20", &["cable.a.outage", "\"20\"", "[\"20 s..30 s\"]"]),
        (
            "outage = \"20 s..30 s\"",
            &["cable.a.outage", "not a list", "[\"20 s..30 s\"]"],
        ),
        (
            "outage = [20]",
            &["cable.a.outage[0]", "\"20\"", "\"20 s..30 s\""],
        ),
        (
            "outage = [\"20..30\"]",
            &["cable.a.outage[0]", "\"20\" has no unit", "ns, us, ms, s"],
        ),
        (
            "queue = { drop_tail = 100 }",
            &["queue.drop_tail", "\"100\"", "100 packets"],
        ),
        (
            "delay = \"45 Mbit/s\"",
            &["cable.a.delay", "another kind", "ns, us, ms, s"],
        ),
        (
            "queue = { drop_tail = \"2 bdp\" }",
            &["queue.drop_tail", "\"2 bdp\"", "100 packets", "64 KiB", "\"bdp\""],
        ),
        (
            "queue = { drop_tail = \"0 packets\" }",
            &["queue.drop_tail", "more than zero"],
        ),
        (
            "queue = { droptail = \"bdp\" }",
            &["cable.a.queue", "did you mean \"drop_tail\"?"],
        ),
        (
            "loss = { rate = 1.5 }",
            &["cable.a.loss.rate", "1.5", "from 0 to 1"],
        ),
        (
            "loss = { rate = nan }",
            &["cable.a.loss.rate", "NaN", "from 0 to 1"],
        ),
        (
            "loss = { direction = \"both\" }",
            &["cable.a.loss", "nothing", "burst"],
        ),
        (
            "loss = { rate = 0.1, direction = \"foward\" }",
            &["loss.direction", "reverse", "did you mean \"forward\"?"],
        ),
        (
            "loss = { unit = \"bit\", drop = [1] }",
            &["cable.a.loss.unit", "add rate"],
        ),
        (
            "loss = { burst = { rate = 0.1, packets = [4, 1] } }",
            &["burst.packets", "4 to 1", "from 1"],
        ),
        (
            "loss = { drop = [1, 0] }",
            &["loss.drop[1]", "no packet 0", "number 1"],
        ),
        (
            "loss = { rate = 0.1, during = [\"30 s..20 s\"] }",
            &["cable.a.loss.during", "30 s..20 s", "earlier"],
        ),
        (
            "loss = { rate = 0.1, during = \"20 s..30 s\" }",
            &["cable.a.loss.during", "not a list"],
        ),
        (
            "outage = [\"30 s..20 s\"]",
            &["cable.a.outage", "30 s..20 s", "earlier"],
        ),
        ("outage = [\"30 s\"]", &["cable.a.outage", "\"20 s..30 s\""]),
        (
            "reorder = { rate = 0.1, delay = \"0 s\" }",
            &["reorder.delay", "more than zero"],
        ),
        (
            "jitter = { delay = \"0 ms\" }",
            &["jitter.delay", "more than zero"],
        ),
        (
            "police = { rate = \"1 Mbit/s\", burst = \"100 B\" }",
            &["cable.a.police", "bursts of 100 B", "1500 B"],
        ),
        (
            "police = { rate = \"0 bit/s\", burst = \"2 kB\" }",
            &["cable.a.police", "0 bit/s"],
        ),
        (
            "police = { rate = \"1 Mbit/s\" }",
            &["cable.a.police", "missing field \"burst\""],
        ),
        (
            "loss = { rate = \"1 %\" }",
            &["loss.rate", "a number: 0.01 for 1 %"],
        ),
        (
            "loss = \"1 %\"",
            &["cable.a.loss", "a table, such as { rate = 0.01 }"],
        ),
        (
            "loss = { rate = 0.1, drop = [true] }",
            &["loss.drop", "a whole number"],
        ),
        (
            "jitter = { delay = \"1 ms\", reorder = 1 }",
            &["jitter.reorder", "true or false"],
        ),
        (
            "jitter = \"2 ms\"",
            &["cable.a.jitter", "a table, such as { delay = \"10 ms\" }"],
        ),
        (
            "police = 7",
            &["cable.a.police", "a table, such as { rate = \"10 Mbit/s\", burst"],
        ),
        (
            "queue = \"fq_codel\"",
            &["cable.a.queue", "the name alone is not enough", "{ codel = {} }"],
        ),
        (
            "corrupt = { rate = -1, direction = \"reverse\" }",
            &["corrupt.rate", "-1", "from 0 to 1"],
        ),
        (
            "queue = { red = { min = \"20 packets\" } }",
            &["cable.a.queue.red", "Packets(20)", "min below max"],
        ),
        (
            "queue = { codel = { target = \"0 s\" } }",
            &["cable.a.queue.codel", "between 0 and the interval"],
        ),
        (
            "queue = { fq_codel = { queues = 0 } }",
            &["cable.a.queue.fq_codel", "0 queues", "1 to 65536"],
        ),
        (
            "queue = { codel = { tarjet = \"1 s\" } }",
            &["cable.a.queue.codel.tarjet", "did you mean \"target\"?"],
        ),
        (
            "mark = \"20 packets\"\nqueue = { codel = {} }",
            &["cable.a.mark", "drop"],
        ),
        (
            "mark = \"10 ms\"",
            &["cable.a.mark", "\"10 ms\"", "20 packets", "30 kB"],
        ),
    ] {
        refused(line, parts);
        refused(line, &["line 3"]);
    }
}

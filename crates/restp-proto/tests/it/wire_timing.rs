//! Time per header, by hand:
//! `cargo test --release -p restp-proto --test wire_timing -- --ignored --nocapture`

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use restp_base::machine::Head;
use restp_proto::wire::*;
use std::hint::black_box;

#[test]
#[ignore = "measures time, which other work on the machine disturbs"]
fn common_headers_cost_tens_of_nanoseconds() {
    println!(
        "Header is {} bytes, ParseError {}",
        size_of::<Header>(),
        size_of::<ParseError>()
    );
    let services = Services {
        order: Order::Full,
        setup: Setup::ThreeWay,
        error: ErrorControl::ARQ,
        congestion: codes::CONG_NEW_RENO,
        flow_control: codes::FC_WINDOW,
        ..Services::default()
    };
    let data = Header {
        flags: Flags::ACK,
        window: Some(64),
        sequence: Some(20),
        acknowledgement: Some(10),
        ..Header::new(services, 50_000, 80)
    };
    let mut sack = data.clone();
    sack.services.error = sack.services.error | ErrorControl::SAK;
    sack.tail = Tail::Sack([(17, 17), (14, 15)].into_iter().collect());
    let mut crc = data.clone();
    crc.services.error = crc.services.error | ErrorControl::CRC;
    let mut dss = data.clone();
    dss.services.paths = Paths::Spreading(Scheduler::RoundRobin);
    dss.k = 2;
    let mapping = Some(Mapping {
        dsn: 1000,
        ssn: 5,
        length: 1,
        payload_crc: None,
    });
    dss.dss = Some(Dss {
        fin: false,
        data_ack: Some(7),
        mapping,
    });
    for (name, header) in [
        ("data", data),
        ("SACK", sack),
        ("DSS", dss),
        ("CRC, no payload", crc),
    ] {
        let (parse_ns, emit_ns) = measure(&header);
        println!("{name:16} parse {parse_ns:5.1} ns, emit {emit_ns:5.1} ns");
        assert!(parse_ns < 1000.0 && emit_ns < 1000.0);
    }
}

fn measure(header: &Header) -> (f64, f64) {
    let mut head = Head::new();
    header.emit(&[], &mut head).unwrap();
    let bytes = head.to_vec();
    let parse_ns = fastest(|| {
        let (header, length) = Header::parse(black_box(&bytes), black_box(bytes.len())).unwrap();
        black_box((&header, length));
    });
    let emit_ns = fastest(|| {
        black_box(header).emit(black_box(&[]), &mut head).unwrap();
        black_box(&head);
    });
    (parse_ns, emit_ns)
}

/// Nanoseconds per call in the fastest of many rounds, each shorter than a time slice of a busy machine.
#[allow(clippy::disallowed_methods, reason = "measuring is what this test is for")]
fn fastest(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 10_000;
    let round = |_| {
        let start = std::time::Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..1000).map(round).fold(f64::INFINITY, f64::min)
}

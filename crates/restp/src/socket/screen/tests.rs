//! The screen and the program for the kernel are one judge, and who is kept out by a flood.

use super::ring::{Arc, PLACES};
use super::*;
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::wire::bare_request;
use restp_proto::{Composition, EndpointConfig};
use restp_seal::packet::{Pattern, hello_header};
use restp_seal::{PublicKey, SealConfig, Sealed, SecretKey};
use std::net::{Ipv4Addr, Ipv6Addr};

type Host = Sealed<restp_proto::Endpoint>;

fn host() -> Host {
    let config = EndpointConfig::new(Composition::default().check().expect("valid"));
    let seal = SealConfig::new(SecretKey::from_chance([1; 32]), [1; 32], bare_request);
    Sealed::new(restp_proto::Endpoint::new(config), seal)
}

fn watch(host: &Host) -> Watch {
    Screen::new(Some(host.gate().clone())).0.expect("a gate")
}

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

/// The begin of a request that proves that `source` receives there.
fn proved(host: &mut Host, now: Time, source: SocketAddr) -> Vec<u8> {
    let token = host.token_for(now, source, PublicKey([0; 32]));
    hello_header(Pattern::Ik, b"somebody", &token.address)
}

fn unproved() -> Vec<u8> {
    hello_header(Pattern::Ik, b"somebody", &[0; 16])
}

fn source(dice: &mut Stream) -> SocketAddr {
    let (ip, port) = (dice.bits() as u32, dice.bits() as u16);
    SocketAddr::from((Ipv4Addr::from_bits(ip), port))
}

/// What the kernel shows its program of `datagram` from `source`.
#[cfg(target_os = "linux")]
fn seen_by_kernel(datagram: &[u8], source: SocketAddr) -> (Vec<u8>, Vec<u8>) {
    let mut network = vec![0; 40];
    match source.ip() {
        std::net::IpAddr::V4(ip) => {
            network[0] = 0x45;
            network[12..16].copy_from_slice(&ip.octets());
        }
        std::net::IpAddr::V6(ip) => {
            network[0] = 0x60;
            network[8..24].copy_from_slice(&ip.octets());
        }
    }
    let udp = [&source.port().to_be_bytes()[..], &[0; 6], datagram].concat();
    (network, udp)
}

#[cfg(target_os = "linux")]
#[test]
fn the_program_for_the_kernel_judges_as_the_screen_does() {
    let (mut host, mut dice) = (host(), Stream::named(1, "screen"));
    let (mut admitted, mut tagged) = (0, 0);
    for turn in 0..4_000_u64 {
        // Proofs of this period, of the one before and of older ones.
        let now = ms(1_000 * turn);
        let mut from = source(&mut dice);
        if turn % 3 == 0 {
            let address = Ipv6Addr::from_bits(u128::from(dice.bits()) << 64 | u128::from(dice.bits()));
            from.set_ip(address.into());
        }
        let age = dice.below(150).min(turn);
        let mut datagram = match turn % 4 {
            0 => unproved(),
            _ => proved(&mut host, ms(1_000 * (turn - age)), from),
        };
        match turn % 8 {
            3 => datagram[0] = dice.bits() as u8,
            5 => datagram.truncate(dice.below(25) as usize),
            6 => datagram[9 + dice.below(4) as usize] ^= 1 << dice.below(8),
            _ => {}
        }
        let mut passing = vec![[0x10..=0x1F, 0x00..=0x85, 0xFF..=0xFF][dice.below(3) as usize].clone()];
        passing.truncate(dice.below(2) as usize);
        let mut arc = || Arc {
            begin: dice.below(PLACES.into()) as u32,
            length: if turn % 5 == 0 {
                PLACES
            } else {
                dice.below(PLACES.into()) as u32
            },
        };
        let mut watch = watch(&host);
        watch.passing = passing;
        watch.turn(now);
        (watch.tagged, watch.others) = (Ring::of(arc()), Ring::of(arc()));
        watch.was_needed = true;
        let steps = program::program(
            &watch.passing,
            &watch.keys,
            watch.tagged.arc(),
            watch.others.arc(),
        );
        assert!(steps.len() < 1_000, "{}", steps.len());
        let (network, udp) = seen_by_kernel(&datagram, from);
        let kernel = program::kernel::run(&steps, &network, &udp);
        tagged += u32::from(watch.keys.judge(&datagram, from).tagged);
        let ours = Screen(Some(watch)).admits(&datagram, from);
        assert!(kernel == 0 || kernel == u32::MAX, "all of it or nothing");
        assert_eq!(kernel > 0, ours, "{datagram:x?} from {from}, turn {turn}");
        admitted += u32::from(ours);
    }
    assert!((1_000..3_000).contains(&admitted) && (500..3_000).contains(&tagged));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_kernel_keeps_out_whose_turn_it_is_not_and_lets_in_proofs_and_sessions() {
    for local in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(socket) = tokio::net::UdpSocket::bind(local).await else {
            assert!(local.starts_with('['), "a host without IPv6");
            continue;
        };
        let peer = std::net::UdpSocket::bind(local).unwrap();
        let (from, to) = (peer.local_addr().unwrap(), socket.local_addr().unwrap());
        let mut host = host();
        let mut watch = watch(&host);
        let nobody = Arc { begin: 0, length: 0 };
        watch.others = Ring::of(nobody);
        watch.delegate(&socket).unwrap();
        let right = proved(&mut host, Time::ZERO, from);
        let other = SocketAddr::new(from.ip(), from.port() ^ 1);
        let of_another = proved(&mut host, Time::ZERO, other);
        for datagram in [
            &unproved()[..],
            &[0; 30],
            &[0xC0; 40],
            &of_another,
            &right,
            &[0x86; 9],
            &[0xE0; 2],
        ] {
            peer.send_to(datagram, to).unwrap();
        }
        let mut buffer = [0; 50];
        for expected in [&[0xC0; 40][..], &right, &[0xE0; 2]] {
            let length = socket.recv(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], expected, "whole, {local}");
        }
        watch.tagged = Ring::of(nobody);
        watch.others = Ring::new();
        watch.delegate(&socket).unwrap();
        for datagram in [&right, &unproved()] {
            peer.send_to(datagram, to).unwrap();
        }
        let length = socket.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], unproved(), "whose turn it is, {local}");
    }
}

/// Three seconds of flood, 100 000 datagrams a second that `next` gives; `new_peer` sends every 200 ms. When it came
/// in for the first time, in ms.
fn flooded(
    screen: &mut Screen,
    from: u64,
    next: &mut dyn FnMut() -> (Vec<u8>, SocketAddr),
    new_peer: (&[u8], SocketAddr),
) -> Option<u64> {
    let mut first = None;
    for at in from..from + 3_000 {
        screen.0.as_mut().expect("a gate").turn(ms(at));
        for _ in 0..100 {
            let (bytes, source) = next();
            screen.admits(&bytes, source);
        }
        if first.is_none() && at % 200 == 50 && screen.admits(new_peer.0, new_peer.1) {
            first = Some(at - from);
        }
    }
    first
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_filter_that_the_kernel_refuses_leaves_no_old_one_behind() {
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut watch = watch(&host());
    watch.others = Ring::of(Arc { begin: 0, length: 0 });
    watch.delegate(&socket).unwrap();
    peer.send_to(&unproved(), socket.local_addr().unwrap()).unwrap();
    assert!(attach(&socket, &[]).is_err(), "an empty one");
    peer.send_to(&[0x80; 30], socket.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 50];
    let received = tokio::time::timeout(std::time::Duration::from_secs(10), socket.recv(&mut buffer));
    assert_eq!(received.await.expect("no filter").unwrap(), 30, "the second only");
}

#[test]
fn a_new_peer_meets_its_turn_in_a_flood_of_invented_sources_and_then_its_proof_goes_in_at_once() {
    let (mut host, mut dice) = (host(), Stream::named(2, "screen"));
    for try_ in 0..20_u64 {
        let mut screen = Screen::new(Some(host.gate().clone()));
        let new_peer = source(&mut dice);
        let invented = &mut || (unproved(), source(&mut dice));
        flooded(&mut screen, 0, invented, (&[], new_peer));
        let first = flooded(&mut screen, 3_000, invented, (&unproved(), new_peer));
        assert!(first.is_some_and(|first| first <= 2_050), "{first:?}, try {try_}");
        let proof = proved(&mut host, ms(6_000), new_peer);
        let then = flooded(&mut screen, 6_000, invented, (&proof, new_peer));
        assert_eq!(then, Some(50), "a proof is never kept out by those without");
    }
}

#[test]
fn who_has_a_proof_and_sends_without_end_keeps_out_nobody() {
    let (mut host, mut dice) = (host(), Stream::named(3, "screen"));
    // One that sends all, and five hundred that share.
    for sources in [1, 500] {
        let mut kept_out = 0;
        for _ in 0..20 {
            let liars: Vec<_> = (0..sources).map(|_| source(&mut dice)).collect();
            let proofs = liars
                .iter()
                .map(|liar| (proved(&mut host, Time::ZERO, *liar), *liar));
            let proofs: Vec<_> = proofs.collect();
            let new_peer = source(&mut dice);
            let mut screen = Screen::new(Some(host.gate().clone()));
            let mut turn = 0;
            let liars = &mut || {
                turn += 1;
                proofs[turn % proofs.len()].clone()
            };
            flooded(&mut screen, 0, liars, (&[], new_peer));
            let first = flooded(&mut screen, 3_000, liars, (&unproved(), new_peer));
            assert_eq!(first, Some(50), "who has no proof yet stands in another ring");
            let proof = proved(&mut host, ms(6_000), new_peer);
            let then = flooded(&mut screen, 6_000, liars, (&proof, new_peer));
            kept_out += u32::from(then.is_none_or(|then| then > 2_050));
        }
        assert!(kept_out <= 1, "{kept_out} of 20 beside {sources}");
    }
}

#[test]
fn keys_of_a_new_minute_reach_the_kernel_before_the_next_turn() {
    let (host, mut dice) = (host(), Stream::named(6, "screen"));
    for (each_ms, is_flood) in [(0, false), (100, true)] {
        let mut watch = watch(&host);
        for at in 59_100..60_000 {
            watch.turn(ms(at));
            for _ in 0..each_ms {
                watch.admits(&unproved(), source(&mut dice));
            }
        }
        let arcs = (watch.tagged.arc(), watch.others.arc());
        assert_eq!(watch.others.is_open(), !is_flood);
        // Without a flood the kernel's program has no keys.
        assert_eq!(watch.turn(ms(60_000)), is_flood);
        assert_eq!(
            (watch.tagged.arc(), watch.others.arc()),
            arcs,
            "no turn ends there"
        );
    }
}

#[test]
fn the_end_of_a_flood_is_noticed_though_nothing_comes() {
    let (mut host, mut dice) = (host(), Stream::named(7, "screen"));
    for is_proved in [false, true] {
        let mut screen = Screen::new(Some(host.gate().clone()));
        let mut next = || {
            let from = source(&mut dice);
            let proof = is_proved.then(|| proved(&mut host, Time::ZERO, from));
            (proof.unwrap_or_else(unproved), from)
        };
        flooded(&mut screen, 0, &mut next, (&[], ([192, 0, 2, 1], 1).into()));
        let mut wakes = 0;
        while let Some(at) = screen.wakes() {
            screen.0.as_mut().unwrap().turn(at);
            wakes += 1;
            assert!(wakes < 100, "proved: {is_proved}");
        }
        let watch = screen.0.unwrap();
        assert!(wakes > 0 && watch.tagged.is_open() && watch.others.is_open());
    }
}

#[test]
fn what_is_not_sealed_keeps_out_nobody_and_sessions_go_on() {
    let host = host();
    let mut dice = Stream::named(4, "screen");
    let mut screen = Screen::new(Some(host.gate().clone()));
    let new_peer = source(&mut dice);
    let plain = &mut || (vec![0; 30], source(&mut dice));
    flooded(&mut screen, 0, plain, (&[], new_peer));
    let first = flooded(&mut screen, 3_000, plain, (&unproved(), new_peer));
    assert_eq!(first, Some(50));
    let watch = screen.0.as_mut().unwrap();
    (watch.tagged, watch.others) = (
        Ring::of(Arc { begin: 0, length: 0 }),
        Ring::of(Arc { begin: 0, length: 0 }),
    );
    assert!(screen.admits(&[0xC0; 40], new_peer) && screen.admits(&[0xEF; 40], new_peer));
    assert!(!screen.admits(&unproved(), new_peer));
}

#[test]
fn without_a_flood_all_come_in_and_without_a_gate_whatever_comes() {
    let host = host();
    let mut screen = Screen::new(Some(host.gate().clone()));
    let mut dice = Stream::named(5, "screen");
    for at in 0..3_000 {
        screen.0.as_mut().unwrap().turn(ms(at));
        for datagram in [&[0; 30][..], &unproved(), &[0xC0; 40], &[]] {
            assert!(screen.admits(datagram, source(&mut dice)));
        }
    }
    assert_eq!(screen.wakes(), None);
    let mut open = Screen::new(None);
    assert!((0..1_000_000).all(|_| open.admits(&[0], source(&mut dice))));
}

#[test]
fn what_is_for_others_comes_in_whatever_the_flood_and_makes_none() {
    let (host, mut dice) = (host(), Stream::named(8, "screen"));
    let mut screen = Screen::new(Some(host.gate().clone()));
    screen.pass(&[0x10..=0x1F]);
    let content = &mut || (vec![0x13; 60], source(&mut dice));
    flooded(&mut screen, 0, content, (&[], ([192, 0, 2, 1], 1).into()));
    assert_eq!(screen.wakes(), None);
    let mut dice = Stream::named(9, "screen");
    let foreign = &mut || (vec![0x20; 60], source(&mut dice));
    flooded(&mut screen, 3_000, foreign, (&[], ([192, 0, 2, 1], 1).into()));
    let from = ([192, 0, 2, 1], 1).into();
    for (first, comes_in) in [
        (0x0F, false),
        (0x10, true),
        (0x1F, true),
        (0x20, false),
        (0x3F, false),
        (0x40, true),
        (0x4F, true),
        (0x50, false),
        (0xC0, true),
    ] {
        assert_eq!(screen.admits(&[first; 9], from), comes_in, "{first:x}");
    }
}

#[test]
fn the_kernel_hears_of_others_that_come_after_a_flood() {
    let mut watch = watch(&host());
    watch.was_needed = true;
    watch.turn(ms(0));
    let mut screen = Screen(Some(watch));
    for (passing, is_news) in [
        (vec![0x10..=0x1F], true),
        (vec![0x10..=0x1F], false),
        (vec![], true),
    ] {
        screen.pass(&passing);
        assert_eq!(screen.0.as_mut().expect("a gate").turn(ms(0)), is_news);
    }
}

//! What a peer or a stranger may send: nothing panics, memory stays bounded, an honest stream is not harmed.

use crate::network::{Net, WIDE, noise};
use bytes::Bytes;
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Input, Machine};
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_rivals::mptcp::options::{Dss, Mapped, Multipath, Number};
use restp_rivals::tcp::wire::Flags;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A connection over two paths that has carried 20 000 bytes.
fn connected() -> (Net, restp_base::flow::FlowId, restp_base::flow::FlowId) {
    let mut net = Net::pair(&[], &[WIDE, WIDE]);
    let flow = net.open(0);
    net.write(0, flow, &noise(20_000));
    net.run_for(MS(500));
    let accepted = net.accepted()[0];
    assert!(net.read_all(1, accepted) == noise(20_000));
    (net, flow, accepted)
}

/// The next data segment of the first path is changed by `change`; how many segments the receiver rejects for it, and
/// whether the stream is whole in the end.
fn with_one_changed(mut change: impl FnMut(&mut Dss) + 'static) -> (u64, bool) {
    let (mut net, flow, accepted) = connected();
    let before = net.hosts[1].stats(accepted).expect("alive").rejected_packets;
    let mut left = 1;
    net.rule = Box::new(move |seen| {
        let opener = seen.is_data_of_opener();
        if let Some(Multipath::Data(dss)) = &mut seen.header.options.multipath
            && opener
            && left > 0
        {
            left -= 1;
            change(dss);
        }
        true
    });
    let data = noise(30_000);
    let got = net.transfer(flow, &data, Duration::from_secs(5));
    let rejected = net.hosts[1].stats(accepted).expect("alive").rejected_packets - before;
    (rejected, got == data)
}

fn moved(mapped: Mapped, by: i64) -> Mapped {
    let Number::Long(data) = mapped.data else {
        panic!("we send long numbers")
    };
    Mapped {
        data: Number::Long(data.wrapping_add_signed(by)),
        ..mapped
    }
}

#[test]
fn mappings_that_cannot_be_are_counted_and_dropped_and_repairs_bring_the_bytes() {
    // A mapping is the sender's word: where it points is not in doubt unless it contradicts itself or the window.
    let beyond = with_one_changed(|dss| dss.mapping = dss.mapping.map(|mapped| moved(mapped, 1 << 40)));
    assert_eq!(beyond, (1, true), "far beyond the window");
    let window = 8192 * 1400;
    let past = with_one_changed(move |dss| dss.mapping = dss.mapping.map(|mapped| moved(mapped, window)));
    assert_eq!(past, (1, true), "just beyond the window");
    let before = with_one_changed(|dss| dss.mapping = dss.mapping.map(|mapped| moved(mapped, -1 << 40)));
    assert_eq!(before, (1, true), "before the beginning");
    let none = with_one_changed(|dss| dss.mapping = None);
    assert_eq!(none, (1, true), "bytes without a mapping");
    let short = with_one_changed(|dss| {
        dss.mapping = dss.mapping.map(|mapped| Mapped {
            length: mapped.length - 1,
            ..mapped
        });
    });
    assert_eq!(short, (1, true), "the last byte has no mapping");
    let empty =
        with_one_changed(|dss| dss.mapping = dss.mapping.map(|mapped| Mapped { length: 0, ..mapped }));
    assert_eq!(empty, (1, true), "of no length");
    let elsewhere =
        with_one_changed(|dss| dss.mapping = dss.mapping.map(|mapped| Mapped { subflow: 0, ..mapped }));
    assert_eq!(elsewhere, (1, true), "of no byte of the subflow");
}

#[test]
fn a_mapping_that_contradicts_an_earlier_one_is_dropped() {
    let (mut net, flow, accepted) = connected();
    let mut count = 0;
    net.rule = Box::new(move |seen| {
        let opener = seen.is_data_of_opener();
        if let Some(Multipath::Data(dss)) = &mut seen.header.options.multipath
            && opener
        {
            count += 1;
            match count {
                1 => return false, // so that the second has to wait for it
                3 => {
                    // The third names bytes of the second as well, and says that they are others.
                    dss.mapping = dss.mapping.map(|mapped| Mapped {
                        subflow: mapped.subflow - 100,
                        length: mapped.length + 100,
                        ..mapped
                    });
                }
                _ => {}
            }
        }
        true
    });
    let before = net.hosts[1].stats(accepted).expect("alive").rejected_packets;
    let data = noise(14_000);
    assert!(net.transfer(flow, &data, Duration::from_secs(5)) == data);
    assert_eq!(
        net.hosts[1].stats(accepted).expect("alive").rejected_packets - before,
        1
    );
}

#[test]
fn an_acknowledgement_of_data_that_were_never_sent_is_counted_and_ignored() {
    let (mut net, flow, accepted) = connected();
    let mut left = 1;
    net.rule = Box::new(move |seen| {
        let answers = seen.from == 1;
        if let Some(Multipath::Data(Dss {
            ack: Some(Number::Long(ack)),
            ..
        })) = &mut seen.header.options.multipath
            && answers
            && left > 0
        {
            left -= 1;
            *ack = ack.wrapping_add(1 << 20);
        }
        true
    });
    let data = noise(100_000);
    assert!(net.transfer(flow, &data, Duration::from_secs(5)) == data);
    assert!(net.hosts[0].stats(flow).unwrap().rejected_packets >= 1);
    assert!(net.hosts[1].stats(accepted).is_some());
}

#[test]
fn random_changes_of_honest_segments_harm_nothing() {
    let mut stream = Stream::named(3, "multipath changes");
    let (mut net, client, server) = connected();
    let honest = net.log.clone();
    for _ in 0..30_000 {
        let seen = &honest[stream.below(honest.len() as u64) as usize];
        let mut header = seen.header.clone();
        match stream.below(5) {
            0 => header.sequence = header.sequence.wrapping_add(stream.below(1 << 16) as u32),
            1 => header.acknowledgement = stream.bits() as u32,
            2 => header.window = stream.bits() as u16,
            3 => header.flags = Flags(stream.bits() as u8 & !Flags::RST.0),
            _ => {}
        }
        let number = |stream: &mut Stream| match stream.below(3) {
            0 => Number::Short(stream.bits() as u32),
            1 => Number::Long(stream.bits()),
            _ => Number::Long(u64::MAX - stream.below(3)),
        };
        if let Some(Multipath::Data(dss)) = &mut header.options.multipath {
            match stream.below(5) {
                0 => dss.ack = Some(number(&mut stream)),
                1 => {
                    dss.mapping = Some(Mapped {
                        data: number(&mut stream),
                        subflow: stream.bits() as u32 >> stream.below(32),
                        length: stream.bits() as u16,
                    });
                }
                2 => dss.fin = !dss.fin,
                3 => dss.mapping = dss.mapping.map(|mapped| moved_either(mapped, &mut stream)),
                _ => {}
            }
        }
        let path = Net::path(seen.path);
        let sent = if seen.from == 0 { path } else { path.reversed() };
        let mut bytes = Datagram::empty();
        header.emit(&seen.payload, sent, &mut bytes.head);
        let whole = [&bytes.head[..], &seen.payload].concat();
        bytes.head.clear();
        (bytes.body, bytes.path) = (Bytes::from(whole), sent.reversed());
        let to = &mut net.hosts[1 - seen.from];
        to.handle(net.now, Input::Datagram(&mut bytes));
        while to.poll_transmit(net.now, &mut bytes) {}
        while to.poll_event().is_some() {}
    }
    for (host, flow) in [(0, client), (1, server)] {
        let held = net.hosts[host].stats(flow).map_or(0, |stats| stats.memory_bytes);
        assert!(held < 40 << 20, "host {host} holds {held}");
    }
}

fn moved_either(mapped: Mapped, stream: &mut Stream) -> Mapped {
    match mapped.data {
        Number::Long(data) => Mapped {
            data: Number::Long(data.wrapping_add(stream.below(1 << 21)).wrapping_sub(1 << 20)),
            ..mapped
        },
        Number::Short(_) => mapped,
    }
}

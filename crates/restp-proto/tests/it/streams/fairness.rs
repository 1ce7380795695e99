//! A thousand streams at once over one link: all get the same, and readers that stall hold up nobody.

use super::*;
use crate::common::links::{link, over};
use restp_base::time::Time;

/// Keeps `count` streams busy over `link` for `span` after a second for the start; bytes read of each, and where `stalls` says so
/// nothing is.
fn share(count: usize, loss: f64, span: Duration, stalls: impl Fn(usize) -> bool) -> (Vec<u64>, f64) {
    let link = link(50, 40).losing(loss);
    let (mut pair, flow) = over(&[link], "resilient", STREAMS);
    pair.run_for(MS * 200);
    let accepted = pair.accepted().expect("accepted");
    let (mut ids, mut got) = (Vec::new(), vec![0; count]);
    let begin = pair.now + Duration::from_secs(1);
    while pair.now < begin + span {
        let tx = streams(&mut pair, 0, flow);
        while ids.len() < count
            && let Ok(id) = tx.open()
        {
            ids.push(id);
        }
        for id in &ids {
            while tx.write(*id, Bytes::from_static(&[7; 4000])).is_ok() {}
        }
        pair.run_for(MS * 10);
        let counts = pair.now > begin;
        for (at, id) in ids.iter().enumerate().filter(|(at, _)| !stalls(*at)) {
            let read = read_all(&mut pair, 1, accepted, *id).0.len() as u64;
            got[at] += if counts { read } else { 0 };
        }
        pair.log.clear();
    }
    let elapsed = pair.now.since(Time::ZERO.max(begin)).as_secs_f64();
    let rate = got.iter().sum::<u64>() as f64 / elapsed / (link.ceiling() / 8.0);
    (got, rate)
}

fn spread(got: &[u64]) -> (f64, f64) {
    let mean = got.iter().sum::<u64>() as f64 / got.len() as f64;
    let least = *got.iter().min().expect("some") as f64;
    let most = *got.iter().max().expect("some") as f64;
    (least / mean, most / mean)
}

/// 50 Mbit/s for 20 s are 125 KB for each of a thousand: 90 turns.
#[test]
fn a_thousand_streams_get_the_same_within_a_tenth() {
    for loss in [0.0, 0.01] {
        let (got, rate) = share(1000, loss, Duration::from_secs(20), |_| false);
        let (least, most) = spread(&got);
        println!("loss {loss}: {least:.3} to {most:.3} of the mean, {rate:.3} of the link");
        assert!(
            least >= 0.95 && most <= 1.05,
            "loss {loss}: {least:.3} to {most:.3} of the mean"
        );
        assert!(loss > 0.0 || rate > 0.9, "{rate:.3} of the link");
    }
}

#[test]
fn one_reader_that_stalls_takes_nothing_from_the_others() {
    let (got, rate) = share(20, 0.0, Duration::from_secs(10), |at| at == 3);
    assert_eq!(got[3], 0);
    let others: Vec<_> = got.iter().copied().filter(|bytes| *bytes > 0).collect();
    assert_eq!(others.len(), 19);
    let (least, most) = spread(&others);
    println!("stalled: {least:.3} to {most:.3} of the mean, {rate:.3} of the link");
    assert!(
        least >= 0.95 && most <= 1.05 && rate > 0.9,
        "{least:.3} to {most:.3}, {rate:.3} of the link"
    );
}

/// A larger send buffer is one for streams too, at once, and whoever was refused is told.
fn a_send_buffer_grows(set: &[(&str, &str)]) {
    let set = [set, STREAMS, &[("send-buffer", "64 KiB")]].concat();
    let (mut pair, flow, _) = crate::common::lines::two_paths("geo-spread", &set);
    crate::common::lines::both_up(&mut pair);
    let id = open(&mut pair, 0, flow);
    pair.rule = Box::new(|_| Verdict::Drop);
    let fill = |pair: &mut Pair| {
        let mut written = 0;
        while streams(pair, 0, flow).write(id, text(id, 1000)).is_ok() {
            written += 1000;
        }
        written
    };
    let first = fill(&mut pair);
    assert!((64_000..67_000).contains(&first), "{first}");
    pair.events[0].clear();
    let set = [("send-buffer".to_string(), "1 MiB".to_string())];
    let changed = pair.ends[0].reconfigure(pair.now, flow, &set);
    assert_eq!(changed, Ok(restp_base::flow::Change::Local));
    pair.run_for(MS);
    assert!(told(&pair, 0, StreamEvent::Writable(id)));
    let more = fill(&mut pair);
    assert!((900_000..1_100_000).contains(&more), "{more}");
}

#[test]
fn a_send_buffer_that_grows_is_shared_out_among_streams() {
    a_send_buffer_grows(crate::common::lines::SPREAD);
    a_send_buffer_grows(&[crate::common::lines::SPREAD, &[("numbering", "shared")]].concat());
}

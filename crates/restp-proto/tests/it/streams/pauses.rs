//! Answers with pauses between them: each begins with a burst.

use super::*;

/// What side 1 answers to a request, and how long side 0 waits for all of it.
fn answer(pair: &mut Pair, (asking, asked): (FlowId, FlowId), size: usize) -> Duration {
    let began = pair.now;
    let id = open(pair, 0, asking);
    streams(pair, 0, asking)
        .write(id, Bytes::from_static(b"give"))
        .expect("room");
    let (mut rest, mut got, mut is_asked) = (text(id, size), 0, false);
    loop {
        pair.run_for(MS);
        let tx = streams(pair, 1, asked);
        is_asked |= tx.accept().is_some();
        while is_asked && !rest.is_empty() && tx.write(id, rest.slice(..rest.len().min(64_000))).is_ok() {
            drop(rest.split_to(rest.len().min(64_000)));
        }
        if rest.is_empty() {
            tx.finish(id);
        }
        let (data, end) = read_all(pair, 0, asking, id);
        got += data.len();
        if end == StreamRead::End {
            assert_eq!(got, size);
            streams(pair, 0, asking).finish(id);
            return pair.now.since(began);
        }
        assert!(pair.now.since(began) < MS * 10_000, "{got} bytes of {size}");
    }
}

#[test]
fn answers_after_pauses_do_not_wait_for_the_acknowledgements_that_are_spared() {
    let spans = |thinning| {
        let set = [
            ("stream-window", "8 MiB"),
            ("window", "65535 segments"),
            ("ack-thinning", thinning),
        ];
        let mut pair = Pair::new("default", &[STREAMS, &set].concat());
        pair.delay = MS * 10;
        let flows = pair.connect();
        pair.delay = MS * 50;
        [1000, 1000, 200_000, 200_000, 200_000, 1_000_000, 200_000].map(|size| {
            let span = answer(&mut pair, flows, size);
            pair.run_for(MS * 300);
            span
        })
    };
    let (spared, all) = (spans("on"), spans("off"));
    for (spared, all) in spared.iter().zip(all) {
        assert!(*spared <= all + MS * 15, "{spared:?} instead of {all:?}");
    }
}

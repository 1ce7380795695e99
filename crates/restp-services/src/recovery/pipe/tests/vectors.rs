//! Ten segments of 1460 bytes, of which 1, 3 and 4 are lost; 2, 5, 6, 7, 8, 9 arrive, then the retransmissions. What each
//! arrival makes the sender do, by scheme (derived from RFC 6675 §5 and TC §3.2 for the same losses).

use super::*;

const MSS: u32 = 1460;

/// One row: pipe when the sender starts filling the window (after the fast retransmission), and what it sends.
type Row = (Option<u64>, Vec<u64>);

/// Pointer after each arrival, and what each scheme says beside it.
fn reports(detail: Detail) -> [AckReport; 9] {
    let pointers = [1, 1, 1, 1, 1, 1, 3, 4, 10];
    let received: [&[Range<u64>]; 9] = match detail {
        Detail::Nak => [&[2..3], &[2..3, 5..6], &[], &[], &[], &[], &[], &[], &[]],
        _ => [
            &[2..3],
            &[5..6, 2..3],
            &[5..7, 2..3],
            &[5..8, 2..3],
            &[5..9, 2..3],
            &[5..10, 2..3],
            &[5..10],
            &[5..10],
            &[],
        ],
    };
    let both: &[Range<u64>] = &[1..2, 3..5];
    let missing: [&[Range<u64>]; 9] = match detail {
        Detail::Nak => [&[1..2], &[3..5], &[], &[], &[], &[], &[], &[], &[]],
        Detail::Snack => [&[1..2], both, both, both, both, both, &[3..5], &[4..5], &[]],
        _ => [&[]; 9],
    };
    std::array::from_fn(|i| snack(pointers[i], received[i], missing[i]))
}

fn rows(detail: Detail) -> Vec<Row> {
    let mut board = Scoreboard::new(0);
    for _ in 0..10 {
        board.on_sent(Time::ZERO, MSS);
    }
    let mut pipe = Pipe::new(PipeParameters::new(detail));
    report(&mut board, &mut pipe, 0, &AckReport::pointer(1));
    let mut window = 0;
    let row = |heard: &AckReport| {
        let flight = board.outstanding_bytes();
        let found = report(&mut board, &mut pipe, 0, heard);
        let mut sent = Vec::new();
        if found.began {
            window = flight / 2;
            sent.extend(retransmit(&mut board, &mut pipe));
        }
        if !pipe.is_active() {
            return (None, sent);
        }
        let at_start = board.in_flight();
        while board.in_flight_bytes() + u64::from(MSS) <= window {
            let retransmitted = retransmit(&mut board, &mut pipe);
            sent.push(retransmitted.unwrap_or_else(|| board.on_sent(Time::ZERO, MSS)));
        }
        (Some(at_start), sent)
    };
    let rows = reports(detail).iter().map(row).collect();
    assert_eq!(window, 6570);
    rows
}

#[test]
fn all_three_schemes_send_the_same_and_differ_in_the_first_pipe() {
    for (detail, first_pipe) in [
        (Detail::Sack { max_blocks: 4 }, 6),
        (Detail::Nak, 4),
        (Detail::Snack, 4),
    ] {
        let expected = [
            (None, vec![]),
            (None, vec![]),
            (Some(first_pipe), vec![1]), // the fast retransmission
            (Some(3), vec![3]),          // rule 1
            (Some(3), vec![4]),
            (Some(3), vec![10]), // rule 2: new data
            (Some(3), vec![11]),
            (Some(3), vec![12]),
            (None, vec![]), // the end of recovery
        ];
        assert_eq!(rows(detail), expected, "{detail:?}");
    }
}

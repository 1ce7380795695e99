//! What may be written where what is in flight takes room, too (RFC 8684 §3.3).

use super::*;

/// Two paths: twice the buffer. With one that is down it is that of one path.
#[test]
fn a_buffer_that_holds_the_flight_is_one_for_each_path() {
    for (down, segments) in [(None, 18), (Some(1), 9)] {
        let mut connection = connection(Numbering::Bytes, Reinjection::OnTimeout, 100_000);
        let buffer = SendBuffer::of_flight(9 * SEGMENT);
        connection.tx.schedule_by(Some(Scheduling::FastestRtt), buffer);
        if let Some(path) = down {
            connection.paths_mut()[path].over = true;
        }
        let more = |connection: &mut Multipath<Lane>| {
            let data = Bytes::from(vec![7; SEGMENT]);
            (0..)
                .take_while(|_| connection.write(data.clone(), None).is_ok())
                .count()
        };
        assert_eq!(more(&mut connection), segments);
        flush(&mut connection, at(0));
        assert_eq!(more(&mut connection), 0, "what has left is not acknowledged");
        let acked = (segments / 3) as u64 * SEGMENT as u64;
        assert!(connection.on_data_ack(FIRST + acked - SEGMENT as u64, None));
        flush(&mut connection, at(1));
        assert_eq!(connection.poll_notice(), None, "less than a third is free");
        assert!(connection.on_data_ack(FIRST + acked, None));
        flush(&mut connection, at(2));
        assert_eq!(connection.poll_notice(), Some(Notice::Writable));
        assert_eq!(more(&mut connection), segments / 3);
    }
}

//! Services that change while a flow runs.

use super::*;
use crate::chaos::changes::Wish;

/// The client asks for no order in the middle of its messages.
fn changing() -> Case {
    let mut case = reliable();
    case.exact = false;
    case.changes = vec![Wish {
        side: Side::Client,
        after_ms: 60,
        set: [("ordering".to_owned(), "unordered".to_owned())].into(),
    }];
    case
}

fn is_of_the_new_era(header: &Header) -> bool {
    header.era && !header.about_eras && header.sequence.is_some()
}

#[test]
fn services_change_without_a_law_broken() {
    let (trace, violation) = played(&changing(), &endpoint);
    assert_eq!(violation, None);
    let agreed = |what: &What| matches!(what, What::Asked { answer, .. } if answer.contains("Agreed"));
    assert!(trace.records.iter().any(|record| agreed(&record.what)));
    let changed = trace.records.iter().any(|record| match &record.what {
        What::Sent { datagram, .. } => {
            let (header, _) = Header::parse(&datagram.to_vec(), datagram.len()).expect("a PDU");
            is_of_the_new_era(&header)
        }
        _ => false,
    });
    assert!(changed, "nothing left under the new services");
}

#[test]
fn a_segment_that_says_another_era_or_has_other_services_is_seen() {
    breaks("eras", &changing(), |trace| {
        for side in Side::BOTH {
            rewrite(trace, side, |header| header.era &= header.about_eras);
        }
    });
    breaks("eras", &changing(), |trace| {
        for side in Side::BOTH {
            rewrite(trace, side, |header| {
                if is_of_the_new_era(header) {
                    header.services.order = restp_proto::wire::Order::Full;
                }
            });
        }
    });
}

//! Extensions of several paths in words (RFC 8684 §3).

use super::List;
use crate::wire::codes;
use crate::wire::mp::Form;
use crate::wire::{Dss, Key, Keys, MpCapable, MpJoin};

pub(super) fn mp_capable(list: &mut List<'_>, capable: &MpCapable, shares: bool) {
    let integrity = if capable.flags & codes::CAPABLE_INTEGRITY != 0 {
        "integrity required, "
    } else {
        ""
    };
    let crypto = match capable.flags & codes::CAPABLE_CRYPTO {
        0 => "no algorithm: extension ignored",
        codes::CAPABLE_HMAC_SHA1 => "HMAC-SHA1",
        _ => "unassigned algorithm among the selected",
    };
    list.add("MP_CAPABLE Flags", 8, format!("{integrity}{crypto}"));
    if shares && capable.form() == Form::Syn {
        list.add("MP_CAPABLE pad", 16, "ignored");
        list.add("Address ID", 8, address_of_sender(capable.address_id));
    } else {
        list.add("MP_CAPABLE pad", 24, "ignored");
    }
    let key_bits = 8 * size_of::<Key>();
    if capable.form() != Form::SynAck {
        list.add("Sender's Key", key_bits, "key of the initiator");
    }
    if !matches!(capable.keys, Keys::Initiator(_)) {
        list.add("Receiver's Key", key_bits, "key of the responder");
    }
}

pub(super) fn address_of_sender(id: u8) -> String {
    format!("address {id} of the sender")
}

pub(super) fn mp_join(list: &mut List<'_>, join: &MpJoin) {
    let first_word = |list: &mut List<'_>, backup: bool, address_id: u8| {
        list.add("MP_JOIN pad", 20, "ignored");
        list.add(
            "MP_JOIN Flags",
            4,
            if backup {
                "B: backup subflow"
            } else {
                "regular subflow"
            },
        );
        list.add("Address ID", 8, address_of_sender(address_id));
    };
    match join {
        MpJoin::Syn {
            backup, address_id, ..
        } => {
            first_word(list, *backup, *address_id);
            list.add("Receiver's Token", 32, "names the connection to join");
            list.add("Sender's Random", 32, "fresh value of the initiator");
        }
        MpJoin::SynAck {
            backup, address_id, ..
        } => {
            first_word(list, *backup, *address_id);
            list.add("Sender's Truncated HMAC", 64, "HMAC-B, leftmost 64 bits");
            list.add("Sender's Random", 32, "fresh value of the responder");
        }
        MpJoin::Ack { .. } => list.add("Sender's HMAC", 160, "HMAC-A"),
    }
}

pub(super) fn dss_extension(list: &mut List<'_>, dss: &Dss) {
    let says = |set, yes: &'static str, no: &'static str| if set { yes } else { no };
    list.add("DSS F", 1, says(dss.fin, "DATA_FIN", "more data may come"));
    list.add(
        "DSS M",
        1,
        says(dss.mapping.is_some(), "mapping present", "no mapping"),
    );
    list.add(
        "DSS A",
        1,
        says(dss.data_ack.is_some(), "Data ACK present", "no Data ACK"),
    );
    let crc = dss.mapping.is_some_and(|m| m.payload_crc.is_some());
    list.add("DSS C", 1, says(crc, "payload CRC present", "no payload CRC"));
    list.add("DSS pad", 12, "ignored");
    let covered = dss.mapping.map(|m| format!("mapping of {} packets", m.length));
    list.add(
        "Data-level length",
        16,
        covered.unwrap_or("ignored without a mapping".into()),
    );
    if let Some(number) = dss.data_ack {
        list.add("Data ACK", 32, format!("connection-level pointer at {number}"));
    }
    if let Some(mapping) = &dss.mapping {
        list.add(
            "DSN",
            32,
            format!("first connection-level number {}", mapping.dsn),
        );
        list.add("SSN", 32, format!("first subflow-level number {}", mapping.ssn));
        if mapping.payload_crc.is_some() {
            list.add("DSS Payload CRC-32", 32, "over the mapped payload");
        }
    }
}

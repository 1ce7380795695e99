//! One record of a qlog file: a record separator, a JSON object, a line feed (RFC 7464 §2.2).

use clap::ValueEnum;
use restp_base::time::Time;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Which schema a file follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Schema {
    /// draft-ietf-quic-qlog-main-schema-13: `file_schema`, tuples.
    #[default]
    Current,
    /// draft-ietf-quic-qlog-main-schema-02, version 0.3: `qlog_version`, which qvis asks for.
    #[value(name = "0.3")]
    Version03,
}

/// From which end a trace is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vantage {
    Client,
    Server,
}

impl Vantage {
    pub fn word(self) -> &'static str {
        match self {
            Vantage::Client => "client",
            Vantage::Server => "server",
        }
    }
}

/// The event schema whose names and fields are used: the vocabulary that tools know, for what it shares with ResTP.
const EVENT_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-12";

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    TupleAssigned,
    PacketSent,
    PacketReceived,
    PacketLost,
    MetricsUpdated,
    /// A controller takes its path for something else.
    CongestionStateUpdated,
    /// In words, of what the vocabulary has no event for.
    Info,
}

impl Name {
    fn word(self, schema: Schema) -> &'static str {
        match (self, schema) {
            (Name::TupleAssigned, Schema::Current) => "quic:tuple_assigned",
            (Name::PacketSent, Schema::Current) => "quic:packet_sent",
            (Name::PacketReceived, Schema::Current) => "quic:packet_received",
            (Name::PacketLost, Schema::Current) => "quic:packet_lost",
            (Name::CongestionStateUpdated, Schema::Current) => "quic:congestion_state_updated",
            (Name::CongestionStateUpdated, Schema::Version03) => "recovery:congestion_state_updated",
            (Name::Info, Schema::Current) => "loglevel:info",
            (Name::Info, Schema::Version03) => "generic:info",
            (Name::MetricsUpdated, Schema::Current) => "quic:recovery_metrics_updated",
            // Version 0.3 has no event for paths; that of a new connection names the addresses.
            (Name::TupleAssigned, Schema::Version03) => "connectivity:connection_started",
            (Name::PacketSent, Schema::Version03) => "transport:packet_sent",
            (Name::PacketReceived, Schema::Version03) => "transport:packet_received",
            (Name::PacketLost, Schema::Version03) => "recovery:packet_lost",
            (Name::MetricsUpdated, Schema::Version03) => "recovery:metrics_updated",
        }
    }
}

/// The first record of a file.
pub(super) fn header(out: &mut impl Write, schema: Schema, title: &str, vantage: Vantage) -> io::Result<()> {
    let vantage_point = json!({ "type": vantage.word() });
    write(
        out,
        &match schema {
            Schema::Current => json!({
                "file_schema": "urn:ietf:params:qlog:file:sequential",
                "serialization_format": "application/qlog+json-seq",
                "title": title,
                "trace": {
                    "vantage_point": vantage_point,
                    "common_fields": {
                        "time_format": "relative_to_epoch",
                        "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                    },
                    "event_schemas": [EVENT_SCHEMA],
                },
            }),
            Schema::Version03 => json!({
                "qlog_format": "JSON-SEQ",
                "qlog_version": "0.3",
                "title": title,
                // qvis names a connection by its trace's title, not by the file's.
                "trace": {
                    "title": title,
                    "vantage_point": vantage_point,
                    "common_fields": { "time_format": "relative", "reference_time": 0.0 },
                },
            }),
        },
    )
}

/// One event; `tuple` names the pair of addresses it concerns.
pub(super) fn event(
    out: &mut impl Write,
    schema: Schema,
    at: Time,
    name: Name,
    tuple: Option<usize>,
    data: Value,
) -> io::Result<()> {
    let mut record = Map::new();
    record.insert("time".into(), milliseconds(at).into());
    record.insert("name".into(), name.word(schema).into());
    if let Some(tuple) = tuple {
        let key = match schema {
            Schema::Current => "tuple",
            // A field of our own, as version 0.3 allows.
            Schema::Version03 => "path",
        };
        record.insert(key.into(), tuple.to_string().into());
    }
    record.insert("data".into(), data);
    write(out, &Value::Object(record))
}

/// Nanoseconds are thousandths of the last digit that is written: six after the point.
fn milliseconds(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e6
}

fn write(out: &mut impl Write, record: &Value) -> io::Result<()> {
    out.write_all(b"\x1e")?;
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

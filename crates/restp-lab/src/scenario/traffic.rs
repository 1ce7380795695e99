//! What a flow carries, validated.

use super::raw::{RawCbr, RawPage, RawTraffic, RawVoip, RawWeb, RawZipf, Size};
use crate::registry::Transport;
use crate::traffic::{Catalogue, Cbr, Framing, MOST_BYTES, Page, Popularity, Traffic, Web, voip};
use crate::unknown::unknown;
use restp_base::time::Duration;
use restp_base::units::{self, Rate};
use restp_sim::config::{Fault, positive, read};
use std::sync::Arc;
use toml::Spanned;

/// The most that is published as one object: all of it is in memory from the beginning.
const LARGEST_OBJECT: u64 = 64 << 20;

/// The most messages of one flow: each leaves its latency in memory until the run ends.
const MOST_MESSAGES: u64 = 50_000_000;

/// What a flow over `transport` carries in a run of `duration`.
pub(super) fn traffic(
    raw: &Spanned<RawTraffic>,
    duration: Duration,
    transport: &Transport,
) -> Result<Traffic, Fault> {
    let is_object = match raw.get_ref() {
        RawTraffic::File(file) => file.bytes.get_ref().0 <= LARGEST_OBJECT,
        RawTraffic::Zipf(_) => true,
        _ => false,
    };
    if transport.is_receiver_driven() && !is_object {
        let name = transport.name();
        let sentence =
            format!("{name} publishes objects; choose file, of {LARGEST_OBJECT} bytes at most, or zipf");
        return Err(Fault::at(raw, sentence));
    }
    match raw.get_ref() {
        RawTraffic::Bulk(_) => Ok(Traffic::Bulk),
        RawTraffic::File(file) => {
            let bytes = positive(&file.bytes, file.bytes.get_ref().0)?;
            Ok(Traffic::File { bytes })
        }
        RawTraffic::Cbr(cbr) => {
            let cbr = constant_bit_rate(raw, cbr)?;
            let messages = duration.as_nanos() / cbr.interval.as_nanos();
            if messages.min(cbr.count.unwrap_or(u64::MAX)) > MOST_MESSAGES {
                let sentence = format!(
                    "{messages} messages are too many for one run; at most {MOST_MESSAGES} are possible"
                );
                return Err(Fault::at(raw, sentence));
            }
            Ok(Traffic::Cbr(cbr))
        }
        RawTraffic::Voip(voip) => Ok(Traffic::Cbr(voice(voip, transport)?)),
        RawTraffic::Web(web) => Ok(Traffic::Web(pages(web)?)),
        RawTraffic::Zipf(_) if !transport.is_reliable() => Err(Fault::at(
            raw,
            format!(
                "{} loses requests and answers; choose a transport that repeats them",
                transport.name()
            ),
        )),
        RawTraffic::Zipf(zipf) => Ok(Traffic::Zipf(catalogue(zipf, transport)?)),
    }
}

/// Over a transport that keeps boundaries there is nothing to frame.
fn voice(raw: &RawVoip, transport: &Transport) -> Result<Cbr, Fault> {
    const FRAMINGS: [(&str, Framing); 2] = [("length", Framing::Prefixed), ("raw", Framing::Raw)];
    let span = |written: &Option<_>| {
        let read = |written| positive(written, read(written, units::duration)?);
        written.as_ref().map(read).transpose()
    };
    let framing = match &raw.framing {
        None => Framing::Prefixed,
        Some(written) => FRAMINGS
            .into_iter()
            .find(|(name, _)| name == written.get_ref())
            .map(|(_, framing)| framing)
            .ok_or_else(|| {
                let names = FRAMINGS.iter().map(|(name, _)| *name);
                Fault::at(written, unknown("framing of voice", written.get_ref(), names))
            })?,
    };
    let framing = if transport.is_stream() {
        framing
    } else {
        Framing::Known
    };
    Ok(voip(span(&raw.duration)?, span(&raw.late_after)?, framing))
}

/// The most objects of a catalogue, each with its share in memory, and the most requests of one flow.
const MOST_OBJECTS: u64 = 1_000_000;
const MOST_REQUESTS: u64 = 10_000_000;

fn catalogue(raw: &RawZipf, transport: &Transport) -> Result<Catalogue, Fault> {
    let count = |written: &Spanned<u64>, what: &str, most: u64| match *written.get_ref() {
        count if (1..=most).contains(&count) => Ok(count),
        count => Err(Fault::at(
            written,
            format!("{count} {what} are impossible; write 1 to {most}"),
        )),
    };
    let objects = count(&raw.objects, "objects", MOST_OBJECTS)?;
    let requests = raw.requests.as_ref();
    let exponent = raw
        .exponent
        .as_ref()
        .map_or(Ok(1.0), |written| match *written.get_ref() {
            exponent if (0.0..=10.0).contains(&exponent) => Ok(exponent),
            exponent => {
                let sentence = format!("{exponent} is no exponent of popularity; write 0 (all alike) to 10");
                Err(Fault::at(written, sentence))
            }
        })?;
    let bytes = positive(&raw.bytes, raw.bytes.get_ref().0)?;
    if bytes > LARGEST_OBJECT {
        let sentence = format!("an object of {bytes} bytes is too large; write {LARGEST_OBJECT} at most");
        return Err(Fault::at(&raw.bytes, sentence));
    }
    let pause = raw.pause.as_ref();
    Ok(Catalogue {
        popularity: Arc::new(Popularity::zipf(objects, exponent)),
        bytes,
        requests: requests.map_or(Ok(1), |written| count(written, "requests", MOST_REQUESTS))?,
        pause: pause.map(|written| read(written, units::duration)).transpose()?,
        is_connectionless: transport.is_receiver_driven(),
    })
}

/// The most pages of one flow: each leaves its load time in memory until the run ends.
const MOST_PAGES: u64 = 100_000;

fn pages(raw: &RawWeb) -> Result<Web, Fault> {
    let pages = raw.pages.as_ref().map_or(1, |pages| *pages.get_ref());
    if let Some(written) = raw.pages.as_ref().filter(|_| !(1..=MOST_PAGES).contains(&pages)) {
        return Err(Fault::at(
            written,
            format!("{pages} pages are impossible; write 1 to {MOST_PAGES}"),
        ));
    }
    let object = |written: &Spanned<Size>| match written.get_ref().0 {
        bytes @ 1..=MOST_BYTES => Ok(bytes),
        bytes => Err(Fault::at(
            written,
            format!("an object of {bytes} bytes is impossible; write 1 to {MOST_BYTES}"),
        )),
    };
    let page = |page: &RawPage| {
        Ok::<Page, Fault>(Page {
            main: object(&page.main)?,
            embedded: page.embedded.iter().map(object).collect::<Result<_, _>>()?,
            parse: page
                .parse
                .as_ref()
                .map_or(Ok(Duration::ZERO), |parse| read(parse, units::duration))?,
        })
    };
    Ok(Web {
        pages,
        first: raw.first.as_ref().map(page).transpose()?,
    })
}

fn constant_bit_rate(whole: &Spanned<RawTraffic>, raw: &RawCbr) -> Result<Cbr, Fault> {
    let bytes = raw.bytes.get_ref().0;
    if !(Cbr::STAMP_BYTES..=Cbr::MOST_BYTES).contains(&bytes) {
        let (least, most) = (Cbr::STAMP_BYTES, Cbr::MOST_BYTES);
        let sentence = format!(
            "a message of {bytes} bytes is impossible; write {least} (its number and time) to {most} bytes"
        );
        return Err(Fault::at(&raw.bytes, sentence));
    }
    let interval = match (&raw.rate, &raw.interval) {
        (Some(rate), None) => interval(positive(rate, read(rate, units::rate)?)?, bytes),
        (None, Some(written)) => positive(written, read(written, units::duration)?)?,
        _ => {
            return Err(Fault::at(
                whole,
                "cbr needs either rate (\"64 kbit/s\") or interval (\"20 ms\"), not both",
            ));
        }
    };
    let late_after = raw
        .late_after
        .as_ref()
        .map(|written| read(written, units::duration))
        .transpose()?;
    let count = raw
        .count
        .as_ref()
        .map(|count| positive(count, *count.get_ref()))
        .transpose()?;
    Ok(Cbr {
        bytes,
        interval,
        count,
        late_after,
        framing: Framing::Known,
    })
}

/// The time between messages of `bytes` at `rate`, rounded to a nanosecond.
pub(super) fn interval(rate: Rate, bytes: u64) -> Duration {
    let nanos =
        (u128::from(bytes) * 8_000_000_000 + u128::from(rate.as_bps() / 2)) / u128::from(rate.as_bps());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

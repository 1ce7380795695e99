//! What a machine of many flows has sent and received, and what a cache has answered.

use restp_rivals::itp::CacheCounters;
use serde::Serialize;

/// One `[[host]]` in one run. What is of caches alone is absent elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostResult {
    /// Its name.
    pub name: String,
    /// Datagrams that it sent: of a cache, its answers.
    pub sent_packets: u64,
    /// Transport bytes in them, headers included.
    pub sent_bytes: u64,
    /// Application bytes in them, as their headers tell; chunks of ITP among them, manifests not.
    pub sent_payload_bytes: u64,
    /// Datagrams that came: to a cache, those that passed.
    pub received_packets: u64,
    /// Transport bytes in them.
    pub received_bytes: u64,
    /// Interests that the cache answered from what it held.
    pub hits: Option<u64>,
    /// Interests for what it did not hold, and passed on.
    pub misses: Option<u64>,
    /// Interests for what somebody else had asked for already, answered when that came.
    pub merged: Option<u64>,
    /// Chunks that it has forgotten for want of room.
    pub evicted: Option<u64>,
    /// Hits as a share of all three.
    pub hit_share: Option<f64>,
}

/// What has been counted of a host up to a moment. The default is that of the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Transport bytes in them.
    pub sent_bytes: u64,
    /// Application bytes in them.
    pub sent_payload_bytes: u64,
    /// Datagrams that came.
    pub received_packets: u64,
    /// Transport bytes in them.
    pub received_bytes: u64,
    /// Of a cache.
    pub cache: Option<CacheCounters>,
}

impl HostCounts {
    /// A datagram of so many bytes was sent, with so many of an application.
    pub fn on_sent(&mut self, bytes: usize, payload: usize) {
        self.sent_packets += 1;
        self.sent_bytes += bytes as u64;
        self.sent_payload_bytes += payload as u64;
    }

    /// A datagram of so many bytes came.
    pub fn on_received(&mut self, bytes: usize) {
        self.received_packets += 1;
        self.received_bytes += bytes as u64;
    }

    /// The account of host `name`, from what was counted `before` until now.
    pub fn since(self, before: HostCounts, name: &str) -> HostResult {
        let was = before.cache.unwrap_or_default();
        let of = |count: fn(CacheCounters) -> u64| self.cache.map(|now| count(now) - count(was));
        let (hits, misses, merged) = (
            of(|cache| cache.hits),
            of(|cache| cache.misses),
            of(|cache| cache.merged),
        );
        let asked: Option<u64> = [hits, misses, merged].into_iter().sum();
        HostResult {
            name: name.to_owned(),
            sent_packets: self.sent_packets - before.sent_packets,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            sent_payload_bytes: self.sent_payload_bytes - before.sent_payload_bytes,
            received_packets: self.received_packets - before.received_packets,
            received_bytes: self.received_bytes - before.received_bytes,
            hits,
            misses,
            merged,
            evicted: of(|cache| cache.evicted),
            hit_share: hits
                .zip(asked.filter(|asked| *asked > 0))
                .map(|(hits, asked)| hits as f64 / asked as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_counted_within_the_window_and_only_a_cache_has_hits() {
        let mut before = HostCounts::default();
        before.on_sent(100, 80);
        let mut after = before;
        after.on_sent(1500, 1400);
        after.on_received(40);
        let result = after.since(before, "server");
        assert_eq!(
            (result.sent_packets, result.sent_bytes, result.sent_payload_bytes),
            (1, 1500, 1400)
        );
        assert_eq!(
            (result.received_packets, result.received_bytes, result.hit_share),
            (1, 40, None)
        );
        let cache = |hits| CacheCounters {
            hits,
            misses: 4,
            merged: 1,
            evicted: 2,
        };
        before.cache = Some(cache(10));
        after.cache = Some(CacheCounters {
            misses: 6,
            merged: 2,
            ..cache(13)
        });
        let result = after.since(before, "cache");
        assert_eq!(
            (result.hits, result.misses, result.evicted),
            (Some(3), Some(2), Some(0))
        );
        assert_eq!(result.hit_share, Some(0.5));
    }
}

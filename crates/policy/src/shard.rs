//! Shards: parts of a list of URLs, such that all URLs of an origin are in the same part. Each part
//! may be fetched by another process or machine, without any communication between them.
//!
//! The hash is fixed for ever: the first 32 bits of SHA-256 (big-endian) of the origin's text,
//! modulo the number of shards. The text is [`Origin::url_prefix`]: scheme and host in lower case,
//! IDNA in ASCII, and the port unless it is the default. Caps, rates and pauses are per origin,
//! too.
//!
//! ```
//! use haul_policy::Scheme;
//! use haul_policy::shard::UrlListShard;
//!
//! let shard = UrlListShard::parse("1/3")?;
//! assert!(shard.contains_url("http://EXAMPLE.com:80/a?b", Scheme::Http));
//! assert_eq!(UrlListShard::parse("3/3").unwrap_err().to_string(), "with 3 shards, K is from 0 to 2");
//! # Ok::<(), haul_policy::shard::ShardError>(())
//! ```
//!
//! Rejected: FNV-1a, whose lowest bit is the parity of the text's lowest bits. Rejected: XXH64,
//! which few databases and no shell can compute, so that a list could not be partitioned without
//! haul. SHA-256 costs less than parsing a URL of another origin.

use core::fmt;
use core::num::NonZeroU32;

use sha2::{Digest, Sha256};

use crate::target::{Origin, Scheme, Target};

/// The number of the shard that contains the texts that are not URLs. One fixed shard contains
/// them, so that each such text is reported once.
pub const SHARD_OF_UNUSABLE_URLS: u32 = 0;

/// Returns the number of the shard to which all URLs of an origin belong, from 0 to `count` - 1.
pub fn shard_of(origin: &Origin, count: NonZeroU32) -> u32 {
    let digest = Sha256::digest(origin.url_prefix());
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) % count
}

/// Returns the number of the shard to which a URL belongs. All URLs of an origin are in the same
/// shard. A text that is not a URL is in shard 0.
pub fn shard_of_url(url: &str, default_scheme: Scheme, count: NonZeroU32) -> u32 {
    match Target::parse_with(url, default_scheme, true) {
        Ok(target) => shard_of(&target.origin(), count),
        Err(_) => SHARD_OF_UNUSABLE_URLS,
    }
}

/// One of several shards: the part of a list of URLs that one process or machine fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlListShard {
    /// The number of this shard, from 0 to `count` - 1.
    number: u32,
    count: NonZeroU32,
}

impl UrlListShard {
    /// Parses `K/N`: shard number K of N shards. K is counted from 0.
    pub fn parse(text: &str) -> Result<UrlListShard, ShardError> {
        let (number, count) = text.split_once('/').ok_or(ShardError::NotTwoNumbers)?;
        let count = NonZeroU32::new(parse_number(count)?).ok_or(ShardError::NoShards)?;
        let number = parse_number(number)?;
        if number >= count.get() {
            return Err(ShardError::NumberTooLarge(count));
        }
        Ok(UrlListShard { number, count })
    }

    /// Returns true if the URLs of `origin` are in this shard.
    pub fn contains(self, origin: &Origin) -> bool {
        shard_of(origin, self.count) == self.number
    }

    /// Returns true if `url` is in this shard. Shard 0 contains all texts that are not URLs.
    pub fn contains_url(self, url: &str, default_scheme: Scheme) -> bool {
        shard_of_url(url, default_scheme, self.count) == self.number
    }

    /// Returns true if this is shard 0, which contains all texts that are not URLs.
    pub fn contains_unusable_urls(self) -> bool {
        self.number == SHARD_OF_UNUSABLE_URLS
    }
}

impl fmt::Display for UrlListShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// Parses a decimal number below 2^32, without a sign.
fn parse_number(text: &str) -> Result<u32, ShardError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ShardError::NotTwoNumbers);
    }
    text.parse().map_err(|_| ShardError::CountTooLarge)
}

/// The reason why a text does not name a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardError {
    /// The text is not two numbers with a slash between them.
    NotTwoNumbers,
    /// The text gives 0 as the number of shards.
    NoShards,
    /// The shard's number or the number of shards is 2^32 or larger.
    CountTooLarge,
    /// The number of the shard is too large. The contained value is the number of shards; the
    /// shard's number must be less.
    NumberTooLarge(NonZeroU32),
}

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShardError::NotTwoNumbers => f.write_str("expected K/N, two numbers such as 0/4"),
            ShardError::NoShards => f.write_str("in K/N, N is at least 1"),
            ShardError::CountTooLarge => write!(f, "in K/N, N is at most {}", u32::MAX),
            ShardError::NumberTooLarge(count) => write!(f, "with {count} shards, K is from 0 to {}", count.get() - 1),
        }
    }
}

impl std::error::Error for ShardError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(url: &str, count: u32) -> u32 {
        shard_of_url(url, Scheme::Http, NonZeroU32::new(count).unwrap())
    }

    /// The expected shards from docs/scale-out.md. They may never change.
    #[test]
    fn shards_of_origins_never_change() {
        let vectors = [
            ("http://example.com", 0xf0e6_a6a9),
            ("https://example.com", 0x1006_80ad),
            ("https://example.com:8443", 0x20ba_33b8),
            ("https://xn--bcher-kva.example", 0xedcf_346b),
            ("http://192.0.2.1", 0x31a6_433a),
            ("http://[2001:db8::1]:8080", 0x40eb_557c),
        ];
        for (origin, hash) in vectors {
            assert_eq!(shard(origin, u32::MAX), hash % u32::MAX, "{origin}");
            for count in [1, 2, 3, 10, 1000, 65_536] {
                assert_eq!(shard(origin, count), hash % count, "{origin} of {count}");
            }
        }
    }

    #[test]
    fn all_spellings_of_an_origin_share_a_shard() {
        let alike = [
            &["http://example.com/", "EXAMPLE.com", "http://me:pw@example.com:80/a?b#c", "http:///example.com"][..],
            &["https://bücher.example/", "https://xn--bcher-kva.example:443/x"],
            &["http://127.0.0.1/", "http://0x7f.1/", "2130706433"],
            &["http://[::1]:8/", "http://[0:0::0:1]:8/"],
        ];
        for urls in alike {
            for url in urls {
                assert_eq!(shard(url, 65_536), shard(urls[0], 65_536), "{url}");
            }
        }
    }

    #[test]
    fn unusable_urls_are_in_shard_0() {
        for text in ["", "ftp://h/", "http://", "http://h:99999/", "http://a b/", "\u{feff}http://h/"] {
            assert_eq!(shard(text, 7), 0, "{text}");
        }
    }

    #[test]
    fn each_url_is_in_exactly_one_shard() {
        for count in 1..20 {
            let shards: Vec<_> =
                (0..count).map(|number| UrlListShard::parse(&format!("{number}/{count}")).unwrap()).collect();
            for host in 0..50 {
                let url = format!("http://h{host}.example/");
                assert_eq!(shards.iter().filter(|shard| shard.contains_url(&url, Scheme::Http)).count(), 1);
            }
        }
    }

    #[test]
    fn similar_host_names_spread_evenly_over_shards() {
        let mut counts = [0; 16];
        for host in 0..16_000 {
            counts[shard(&format!("http://h{host}.example/"), 16) as usize] += 1;
        }
        // Ten standard deviations around 1,000.
        assert!(counts.iter().all(|count| (700..1300).contains(count)), "{counts:?}");
    }

    #[test]
    fn shard_argument_errors_name_the_rule() {
        let wrong = [
            ("", ShardError::NotTwoNumbers),
            ("3", ShardError::NotTwoNumbers),
            ("a/b", ShardError::NotTwoNumbers),
            ("/3", ShardError::NotTwoNumbers),
            ("0/", ShardError::NotTwoNumbers),
            ("-1/3", ShardError::NotTwoNumbers),
            ("+0/3", ShardError::NotTwoNumbers),
            ("0/3/4", ShardError::NotTwoNumbers),
            (" 0/3", ShardError::NotTwoNumbers),
            ("0/0", ShardError::NoShards),
            ("3/3", ShardError::NumberTooLarge(NonZeroU32::new(3).unwrap())),
            ("0/4294967296", ShardError::CountTooLarge),
        ];
        for (text, error) in wrong {
            assert_eq!(UrlListShard::parse(text), Err(error), "{text}");
        }
        assert_eq!(UrlListShard::parse("2/3").unwrap().to_string(), "2/3");
        assert!(UrlListShard::parse("4294967294/4294967295").is_ok());
    }

    #[test]
    fn first_shard_has_the_unusable_urls() {
        let shards = [UrlListShard::parse("0/2").unwrap(), UrlListShard::parse("1/2").unwrap()];
        assert_eq!(shards.map(UrlListShard::contains_unusable_urls), [true, false]);
        assert_eq!(shards.map(|shard| shard.contains_url("http://a b/", Scheme::Http)), [true, false]);
    }

    #[test]
    fn each_origin_is_in_one_shard() {
        let shards: Vec<UrlListShard> =
            (0..3).map(|number| UrlListShard::parse(&format!("{number}/3")).unwrap()).collect();
        for host in 0..50 {
            let target = crate::Target::parse(&format!("http://h{host}.example/a")).unwrap();
            let within: Vec<&UrlListShard> = shards.iter().filter(|shard| shard.contains(&target.origin())).collect();
            assert_eq!(within.len(), 1, "{host}");
            assert!(within[0].contains_url(&target.to_url(), Scheme::Http));
        }
    }
}

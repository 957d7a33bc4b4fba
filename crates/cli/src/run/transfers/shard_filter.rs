//! Selects the URLs of a shard (`--shard`).

use haul::Result;
use haul_policy::shard::UrlListShard;
use haul_policy::target::{Origin, Scheme, Target};

use super::jsonl_record_requests::ListedRequest;

/// Selects the URLs whose host is in a shard. Stores the last result, because a URL often has the
/// same origin as the previous one.
pub(crate) struct ShardFilter {
    /// The shard whose URLs are selected; `None` selects all URLs.
    shard: Option<UrlListShard>,
    /// The scheme of URLs that are written without a scheme.
    default_scheme: Scheme,
    /// The origin of the last URL, and true if it is in the shard. `None` before the first URL.
    last: Option<(Origin, bool)>,
}

impl ShardFilter {
    pub(crate) fn new(shard: Option<UrlListShard>, default_scheme: Scheme) -> Self {
        Self { shard, default_scheme, last: None }
    }

    /// Returns true if the URL is in the shard. Shard 0 contains each text that is not a URL.
    pub(crate) fn contains(&mut self, url: &str) -> bool {
        let Some(shard) = self.shard else { return true };
        let near = self.last.as_ref().map(|(origin, _)| origin);
        let Ok(target) = Target::parse_near(url, near, self.default_scheme, true) else {
            return shard.contains_unusable_urls();
        };
        let origin = target.origin();
        match &self.last {
            Some((last, is_contained)) if *last == origin => *is_contained,
            _ => {
                let is_contained = shard.contains(&origin);
                self.last = Some((origin, is_contained));
                is_contained
            }
        }
    }

    /// Returns the request `made` if this shard contains its URL, and otherwise `None`. If `made`
    /// is an error because the URL is unusable, returns the error in shard 0 and in a run without
    /// shards, and `None` in other shards.
    pub(crate) fn chosen(&mut self, made: Result<ListedRequest>) -> Result<Option<ListedRequest>> {
        match made {
            Ok(listed) => Ok(self.contains(&listed.url).then_some(listed)),
            Err(_) if !self.contains_unusable_urls() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if lines that are not a URL belong to this shard, such as a line of a list that
    /// cannot be parsed.
    pub(crate) fn contains_unusable_urls(&self) -> bool {
        self.shard.is_none_or(UrlListShard::contains_unusable_urls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_filter_selects_only_urls_of_its_shard() {
        let shard = UrlListShard::parse("0/2").unwrap();
        let mut filter = ShardFilter::new(Some(shard), Scheme::Https);
        let urls =
            ["http://a/", "http://a/b", "http://b/", "https://b/", "b/x", "ftp://no/", "http://b:81/", "http://a/"];
        for url in urls {
            assert_eq!(filter.contains(url), shard.contains_url(url, Scheme::Https), "{url}");
        }
    }
}

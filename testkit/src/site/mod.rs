//! The site of the first job of the bench: three index pages that list thousands of pages of
//! autonomous systems (AS), which contain CIDR blocks in HTML.
//!
//! Every page is a pure function of the seed and the number of the page. The site therefore needs
//! no disk, and a test can compute the correct answer.
//!
//! ```
//! use testkit::site::GeneratedSite;
//!
//! let site = GeneratedSite::scaled(1, 5);
//! let number = site.as_numbers()[0];
//! let page = site.page(&format!("/AS{number}")).unwrap();
//! assert_eq!(page.len(), site.page_len(number));
//! assert_eq!(site.known_answer().sha256.len(), 64);
//! ```

mod autonomous_system_numbers;
mod expected_cidr_blocks;
mod render;

pub use expected_cidr_blocks::ExpectedCidrBlocks;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// The number of AS pages of the full site. An AS page, such as `/AS64500`, belongs to one
/// autonomous system (AS).
pub const PAGES: usize = 5_703;

/// The number of index pages, at `/1`, `/2`, `/3`.
pub const INDEXES: usize = 3;

/// A site that is generated from a seed. Clones share its data.
#[derive(Clone)]
pub struct GeneratedSite {
    inner: Arc<GeneratedSiteInner>,
}

struct GeneratedSiteInner {
    seed: u64,
    numbers: Vec<u32>,
    positions: HashMap<u32, usize>,
    cache: Option<Vec<OnceLock<Bytes>>>,
}

impl GeneratedSite {
    /// Creates the full site for `seed`: a page for each of 5,703 autonomous systems, about 276 MiB
    /// in total.
    pub fn new(seed: u64) -> GeneratedSite {
        GeneratedSite::scaled(seed, PAGES)
    }

    /// Creates a site with the pages of `pages` autonomous systems. The lengths of the pages have
    /// the same distribution as in the full site.
    pub fn scaled(seed: u64, pages: usize) -> GeneratedSite {
        GeneratedSite::build(seed, pages, false)
    }

    /// Returns a copy of this site with a cache: each page stays in memory after its first use
    /// (about 276 MiB for the full site).
    pub fn cached(self) -> GeneratedSite {
        GeneratedSite::build(self.inner.seed, self.inner.numbers.len(), true)
    }

    fn build(seed: u64, pages: usize, cached: bool) -> GeneratedSite {
        let numbers = autonomous_system_numbers::distinct(seed, pages);
        let positions = numbers.iter().enumerate().map(|(i, n)| (*n, i)).collect();
        let cache = cached.then(|| (0..pages + INDEXES).map(|_| OnceLock::new()).collect());
        GeneratedSite { inner: Arc::new(GeneratedSiteInner { seed, numbers, positions, cache }) }
    }

    /// Returns the seed from which the site was generated.
    pub fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// Returns the numbers of the autonomous systems, in the order in which the index pages list
    /// them first.
    pub fn as_numbers(&self) -> &[u32] {
        &self.inner.numbers
    }

    /// Returns the paths of the index pages: `/1`, `/2` and `/3`.
    pub fn index_paths(&self) -> Vec<String> {
        (1..=INDEXES).map(|i| format!("/{i}")).collect()
    }

    /// Returns the paths of the pages of autonomous systems, such as `/AS64500`, in the order in
    /// which the index pages list them first.
    pub fn as_paths(&self) -> Vec<String> {
        self.inner.numbers.iter().map(|n| format!("/AS{n}")).collect()
    }

    /// Returns the exact length in bytes of the page of the autonomous system with this number.
    pub fn page_len(&self, number: u32) -> usize {
        autonomous_system_numbers::page_len(self.inner.seed, number)
    }

    /// Returns the total length in bytes of the pages of all autonomous systems.
    pub fn total_len(&self) -> u64 {
        self.inner.numbers.iter().map(|n| self.page_len(*n) as u64).sum()
    }

    /// Returns the page at `path`; `None` if the site has no such page.
    pub fn page(&self, path: &str) -> Option<Bytes> {
        let slot = self.cache_index(path)?;
        match &self.inner.cache {
            Some(cache) => Some(cache[slot].get_or_init(|| self.render(slot)).clone()),
            None => Some(self.render(slot)),
        }
    }

    /// Returns the distinct CIDR blocks in the pages of all autonomous systems, sorted. Generates
    /// all pages, and records the blocks while they are written.
    pub fn known_answer(&self) -> ExpectedCidrBlocks {
        let mut answer = expected_cidr_blocks::CidrBlockCollector::default();
        let mut page = Vec::new();
        for number in &self.inner.numbers {
            page.clear();
            render::as_page(&mut page, self.inner.seed, *number, |block| answer.add(block));
        }
        answer.finish()
    }

    /// Writes the site as plain files (`1`, `2`, `3`, `AS…`) into `dir`, so that another server can
    /// serve the site.
    ///
    /// # Errors
    /// If the directory cannot be created or a file cannot be written.
    pub fn write_to(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        for path in self.index_paths().into_iter().chain(self.as_paths()) {
            let page = self.page(&path).expect("the site has the paths it lists");
            std::fs::write(dir.join(path.trim_start_matches('/')), page)?;
        }
        Ok(())
    }

    /// Returns the index of the cache entry for the page at `path`: index pages come first, then AS
    /// pages. `None` if the site has no such page. Each page has only one path: `/AS007` is not the
    /// page of AS 7.
    fn cache_index(&self, path: &str) -> Option<usize> {
        let name = path.strip_prefix('/')?;
        if let Some(digits) = name.strip_prefix("AS") {
            let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
            let number = digits.parse().ok().filter(|_| canonical)?;
            return self.inner.positions.get(&number).map(|position| INDEXES + position);
        }
        (1..=INDEXES).position(|index| index.to_string() == name)
    }

    fn render(&self, slot: usize) -> Bytes {
        let GeneratedSiteInner { seed, numbers, .. } = &*self.inner;
        let mut out = Vec::new();
        if slot < INDEXES {
            render::index_page(&mut out, *seed, slot, numbers);
        } else {
            render::as_page(&mut out, *seed, numbers[slot - INDEXES], |_| ());
        }
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashSet};

    use regex::bytes::Regex;

    fn cidr() -> Regex {
        Regex::new("[0-9.]{7,15}/[0-9]{1,2}").unwrap()
    }

    #[test]
    fn generated_site_has_documented_page_sizes() {
        let site = GeneratedSite::new(1);
        let lens: Vec<usize> = site.as_numbers().iter().map(|n| site.page_len(*n)).collect();
        assert_eq!(lens.len(), PAGES);
        let (min, max) = (lens.iter().min().unwrap(), lens.iter().max().unwrap());
        assert!(*min >= 12 << 10 && *min < 13 << 10, "{min}");
        assert!(*max <= 892 << 10 && *max > 768 << 10, "{max}");
        let mib = site.total_len() >> 20;
        assert!((268..=284).contains(&mib), "{mib} MiB");
    }

    #[test]
    fn pages_are_reproducible_and_have_planned_length() {
        let (one, two) = (GeneratedSite::scaled(9, 60), GeneratedSite::scaled(9, 60).cached());
        for (path, number) in one.as_paths().iter().zip(one.as_numbers()) {
            let page = one.page(path).unwrap();
            assert_eq!(page.len(), one.page_len(*number), "{path}");
            assert_eq!(page, two.page(path).unwrap());
            assert_eq!(page, two.page(path).unwrap(), "from the cache");
        }
        assert_ne!(GeneratedSite::scaled(8, 60).known_answer().sha256, one.known_answer().sha256);
    }

    #[test]
    fn index_pages_list_exactly_the_as_pages() {
        let site = GeneratedSite::new(3);
        let names = Regex::new("AS[0-9]{1,9}").unwrap();
        let (mut seen, mut matches) = (HashSet::new(), 0);
        for path in site.index_paths() {
            let page = site.page(&path).unwrap();
            for name in names.find_iter(&page) {
                let after = page.get(name.end()).copied();
                assert!(!after.is_some_and(|b| b.is_ascii_digit()), "a number of more than nine digits");
                seen.insert(String::from_utf8(name.as_bytes().to_vec()).unwrap());
                matches += 1;
            }
        }
        let expected: HashSet<String> = site.as_numbers().iter().map(|n| format!("AS{n}")).collect();
        assert_eq!(seen, expected);
        assert!(matches > 2 * PAGES);
        let digits: BTreeSet<usize> = site.as_numbers().iter().map(|n| n.to_string().len()).collect();
        assert_eq!(digits, (1..=9).collect());
    }

    #[test]
    fn known_answer_equals_output_of_regular_expression() {
        let site = GeneratedSite::scaled(5, 400);
        let expression = cidr();
        let mut found = BTreeSet::new();
        let mut matches = 0;
        for path in site.as_paths() {
            let page = site.page(&path).unwrap();
            for block in expression.find_iter(&page) {
                found.insert(block.as_bytes().to_vec());
                matches += 1;
            }
        }
        let answer = site.known_answer();
        let lines: Vec<Vec<u8>> = answer.text.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        assert_eq!(lines.last().unwrap(), b"", "each line ends");
        assert_eq!(lines.len() - 1, answer.count);
        assert!(found.iter().eq(lines[..answer.count].iter()));
        assert!(matches > found.len() * 2, "blocks repeat, so that unique has work to do");
        assert!(found.contains(&b"0.0.0.0/0"[..]), "the shortest block");
        assert!(found.iter().any(|b| b.len() == 18), "a block cut out of a longer run of digits and dots");
    }

    #[test]
    fn paths_outside_the_site_have_no_page() {
        let site = GeneratedSite::scaled(1, 5);
        let number = site.as_numbers()[0];
        for path in
            ["/", "/0", "/4", "/01", "/AS", "/ASx", "AS1", "/AS+1", &format!("/AS0{number}"), &format!("/AS{number}/")]
        {
            assert!(site.page(path).is_none(), "{path}");
        }
    }
}

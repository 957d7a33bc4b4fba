//! The contents of the package mirror: packages generated from a seed, and the page that lists
//! them.

use std::fmt::Write;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};

use crate::byte_pattern::BytePattern;
use crate::rng::Rng;

/// The size of a block of a package in bytes. The package's gzip header has a SHA-256 digest for
/// each block.
pub const BLOCK: usize = 64 << 10;

/// A package: a gzip file whose header contains the digests of the blocks that follow.
#[derive(Debug)]
pub struct SignedGzipPackage {
    /// The file name of the package.
    pub name: String,
    /// All bytes of the package.
    pub bytes: Vec<u8>,
    /// The length of the gzip header in bytes, which is the offset of the first block.
    pub header: usize,
    /// The number of bytes after the gzip header that pkg_add, the program that reads the package,
    /// needs. These are the bytes up to the end of the packing list (the list of the package's
    /// files, which comes first), or all bytes if pkg_add needs the whole package.
    pub needed: usize,
}

impl SignedGzipPackage {
    fn new(name: String, seed: u64, size: usize, needed: usize) -> SignedGzipPackage {
        let blocks = BytePattern::new(seed).slice(0, size);
        // RFC 1952: deflate, a comment, no time, no system.
        let mut bytes = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff".to_vec();
        let mut comment = format!(
            "untrusted comment: verify with testkit-pkg.pub\n{}\ndate=2026-01-01T00:00:00Z\nkey=/etc/signify/testkit-pkg.sec\n\
             algorithm=SHA256\nblocksize={BLOCK}\n\n",
            "R".repeat(100)
        );
        for block in blocks.chunks(BLOCK) {
            let _ = writeln!(comment, "{}", hex(block));
        }
        bytes.extend_from_slice(comment.as_bytes());
        bytes.push(0);
        let header = bytes.len();
        bytes.extend_from_slice(&blocks);
        SignedGzipPackage { name, bytes, header, needed: needed.min(size) }
    }

    /// Creates a package from `bytes`, a file in the format of `signify -zS`. `needed` is the
    /// number of bytes after the gzip header that the simulated pkg_add needs; it becomes the field
    /// [`needed`](SignedGzipPackage::needed).
    pub fn from_bytes(name: &str, bytes: Vec<u8>, needed: usize) -> SignedGzipPackage {
        // Behind gzip's own ten bytes stands the comment, and a zero.
        let header = bytes.iter().skip(10).position(|byte| *byte == 0).map_or(bytes.len(), |zero| 10 + zero + 1);
        SignedGzipPackage { name: name.to_owned(), header, needed: needed.min(bytes.len() - header), bytes }
    }

    /// Returns the smallest number of bytes of the package that pkg_add must receive before it can
    /// stop: the gzip header, the blocks that contain the bytes it needs, and one more block.
    /// pkg_add passes each block to an unpacker, which exits when it has the needed bytes. pkg_add
    /// notices the exit only when it tries to pass on one more block.
    pub fn min_sent_bytes(&self) -> usize {
        let blocks = self.needed.div_ceil(BLOCK).max(1) + 1;
        self.bytes.len().min(self.header + blocks * BLOCK)
    }

    /// Returns `true` if pkg_add must receive the whole package to get the bytes that it needs.
    pub fn is_needed_whole(&self) -> bool {
        self.min_sent_bytes() == self.bytes.len()
    }
}

/// The part of a file (the index page or a package) that the simulated pkg_add needs.
/// [`to_line`](Self::to_line) writes it as one line for the benchmark programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededPackagePart {
    /// The file name of the package; empty for the index.
    pub name: String,
    /// The length of the file in bytes.
    pub length: usize,
    /// The number of bytes after the gzip header that pkg_add needs; for the index page, its
    /// length.
    pub needed: usize,
}

impl NeededPackagePart {
    /// Returns the fields as one line, `name length needed`.
    pub fn to_line(&self) -> String {
        format!("{} {} {}", self.name, self.length, self.needed)
    }

    /// Parses a line that [`NeededPackagePart::to_line`] wrote; `None` if it is malformed.
    pub fn from_line(line: &str) -> Option<NeededPackagePart> {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        Some(NeededPackagePart { name, length: words.next()?.parse().ok()?, needed: words.next()?.parse().ok()? })
    }
}

/// Returns the SHA-256 of a block of a package in hexadecimal, as in a line of the package's gzip
/// header.
pub(super) fn hex(block: &[u8]) -> String {
    digest(&SHA256, block).as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// All packages of a mirror, and the index page that lists them. Clones share the data.
#[derive(Debug, Clone)]
pub struct PackageCatalogue {
    inner: Arc<PackageCatalogueInner>,
}

#[derive(Debug)]
struct PackageCatalogueInner {
    packages: Vec<SignedGzipPackage>,
    index: Vec<u8>,
}

/// The approximate length in bytes of the index page, the HTML page of the mirror that lists its
/// packages.
const INDEX_LENGTH: usize = 2_500_000;
/// The interval between the packages that the simulated pkg_add reads completely: every 20th
/// package. Of each other package, it reads only the beginning.
const PACKAGES_PER_WHOLE_READ: usize = 20;

impl PackageCatalogue {
    /// Creates `count` packages of 10 KB to 8 MB from a seed, most of them below 1 MB.
    pub fn new(seed: u64, count: usize) -> PackageCatalogue {
        let mut random = Rng::new(seed);
        let packages: Vec<SignedGzipPackage> = (0..count)
            .map(|number| {
                let size = 10_000 << random.below(7);
                let size = usize::try_from(size + random.below(size)).unwrap_or(usize::MAX);
                let size = if number % 17 == 5 { 8_000_000 } else { size };
                let list = 500 + random.below(40_000) as usize;
                let needed =
                    if number % PACKAGES_PER_WHOLE_READ == PACKAGES_PER_WHOLE_READ - 1 { usize::MAX } else { list };
                SignedGzipPackage::new(format!("package-{number}.tgz"), seed + number as u64, size, needed)
            })
            .collect();
        Self::from_packages(packages)
    }

    /// Creates a catalogue of these packages.
    pub fn from_packages(packages: Vec<SignedGzipPackage>) -> PackageCatalogue {
        let mut index = String::from("<html><head><title>Index</title></head><body><pre>\n");
        let mut number = 0;
        while index.len() < INDEX_LENGTH {
            let name =
                packages.get(number).map_or_else(|| format!("other-{number}.tgz"), |package| package.name.clone());
            let _ = writeln!(index, "<a href=\"{name}\">{name}</a>{:>30} {:>12}", "01-Jan-2026 00:00", number * 7919);
            number += 1;
        }
        index.push_str("</pre></body></html>\n");
        PackageCatalogue { inner: Arc::new(PackageCatalogueInner { packages, index: index.into_bytes() }) }
    }

    /// Returns the packages in the order in which the simulated pkg_add reads them.
    pub fn packages(&self) -> &[SignedGzipPackage] {
        &self.inner.packages
    }

    /// Returns the HTML of the index page.
    pub fn index(&self) -> &[u8] {
        &self.inner.index
    }

    /// Returns the part of each file that the simulated pkg_add needs, in the order in which it
    /// reads the files: the index page, then the packages.
    pub fn needed_parts(&self) -> Vec<NeededPackagePart> {
        let index = NeededPackagePart { name: String::new(), length: self.index().len(), needed: self.index().len() };
        let packages = self.packages().iter();
        let packages = packages.map(|package| NeededPackagePart {
            name: package.name.clone(),
            length: package.bytes.len(),
            needed: package.needed,
        });
        [index].into_iter().chain(packages).collect()
    }

    /// Returns the package with this name, or `None`.
    pub fn find(&self, name: &str) -> Option<&SignedGzipPackage> {
        self.inner.packages.iter().find(|package| package.name == name)
    }
}

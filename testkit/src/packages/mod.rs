//! A mirror of packages, and a reader of it that works like OpenBSD's pkg_add. The reader reads an
//! index, and then the beginnings of many packages. For each file it runs a fetch program with the
//! URL, and reads the program's output from a pipe.
//!
//! ```text
//!  mirror (index 2.5 MB, packages)  ◀── fetcher, one process a file ──▶ pipe ──▶ reader: header, block by block, then it stops
//! ```
//!
//! A package is a gzip file whose header contains the digests of all following blocks of 64 KiB, as
//! signify's `-z` writes it. The reader checks each block before it passes the block on to the
//! unpacker. It notices that the unpacker has stopped only when it passes on the next block, so at
//! least the header and two blocks of a package have to be fetched.
//!
//! ```
//! use testkit::packages::{PackageCatalogue, PackageMirror};
//!
//! let catalogue = PackageCatalogue::new(1, 3);
//! let mirror = PackageMirror::start(catalogue.clone(), None).unwrap();
//! let words = ["curl", "-s"].map(str::to_owned);
//! let reader = testkit::packages::PkgAddEmulator { fetcher: &words, base: &mirror.url("") };
//! # let _ = reader;
//! assert_eq!(mirror.connections(), 0);
//! ```

mod catalogue;
mod mirror;
mod simulated_pkg_add;

pub use catalogue::{BLOCK, NeededPackagePart, PackageCatalogue, SignedGzipPackage};
pub use mirror::PackageMirror;
pub use simulated_pkg_add::{PackageReadMeasurement, PkgAddEmulator};

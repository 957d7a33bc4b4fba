//! How the command line reaches the files it names, so that tests hand in text instead.
//!
//! ```
//! use haul_cli::files::Files;
//! use std::{io::Read, path::Path};
//!
//! struct OneFile;
//! impl Files for OneFile {
//!     fn open(&mut self, _: &Path) -> std::io::Result<Box<dyn Read>> {
//!         Ok(Box::new(&b"url = http://example.com/"[..]))
//!     }
//! }
//! let args = ["-K", "any"].map(Into::into);
//! let low = haul_cli::parse::parse(args, &mut OneFile).unwrap();
//! assert_eq!(low.groups[0].urls.len(), 1);
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The files that `-K`, `-d @`, `-H @` and `-w @` read.
pub trait Files {
    /// Opens a file for reading; `-` is standard input.
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>>;
}

/// The real files of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFiles;

impl Files for SystemFiles {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        if path == Path::new("-") {
            return Ok(Box::new(io::stdin()));
        }
        let file = File::open(path)?;
        // Opening a directory succeeds on Unix and would only fail at the first read.
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Ok(Box::new(file))
    }
}

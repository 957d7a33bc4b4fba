//! A simulated pkg_add: reads packages from the mirror as pkg_add does. It runs one fetch program
//! for each file, with an empty environment, checks the output block by block, and closes the pipe
//! when it has read enough.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::catalogue::hex;
use super::{BLOCK, NeededPackagePart};

/// The number of bytes that the simulated pkg_add reads at a time from the pipe of the fetch
/// program until the end of a package's gzip header, as signify does. The blocks after the header
/// are read in larger pieces.
const HEADER_READ: usize = 1024;

/// A reader of packages that works like OpenBSD's pkg_add: it runs a fetch program for each file
/// and reads that program's output.
pub struct PkgAddEmulator<'a> {
    /// The fetch program and its options: the value of `FETCH_CMD`, split at blanks.
    pub fetcher: &'a [String],
    /// The URL of the index page. The URL of a package is this URL with the package's name
    /// appended.
    pub base: &'a str,
}

/// The cost of reading a list of packages: the time, the number of fetch programs started (one for
/// each file), and the number of bytes read.
#[derive(Debug, Clone, Default)]
pub struct PackageReadMeasurement {
    /// The time from the start of the first fetch program to the end of the last one.
    pub wall: Duration,
    /// The number of fetch programs started.
    pub calls: u64,
    /// The number of bytes that the reader read from the fetch programs.
    pub read: u64,
    /// The standard error of all fetch programs, concatenated.
    pub error_output: String,
}

impl PkgAddEmulator<'_> {
    /// Reads the files, one after the other: of each package, the gzip header and the first
    /// [`needed`](NeededPackagePart::needed) bytes after it. Each fetch program starts after the
    /// previous one has exited.
    ///
    /// # Errors
    /// If a fetch program cannot be started, or its output is wrong.
    pub fn run(&self, needed_parts: &[NeededPackagePart]) -> io::Result<PackageReadMeasurement> {
        let mut run = PackageReadMeasurement::default();
        let began = Instant::now();
        for part in needed_parts {
            let (mut child, mut pipe) = self.open(&part.name)?;
            let read = if part.name.is_empty() { read_index(&mut pipe, part) } else { read_package(&mut pipe, part) }?;
            drop(pipe);
            run.read += read as u64;
            run.close(&mut child, read == part.length)?;
        }
        run.wall = began.elapsed();
        Ok(run)
    }

    fn open(&self, name: &str) -> io::Result<(Child, ChildStdout)> {
        let (program, options) = self.fetcher.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(options)
            .args(["-o", "-"])
            .arg(format!("{}{name}", self.base))
            .env_clear()
            .envs([("HOME", "/var/empty"), ("PATH", "/bin:/usr/bin"), ("LC_ALL", "C")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipe = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((child, pipe))
    }
}

impl PackageReadMeasurement {
    fn close(&mut self, child: &mut Child, must_succeed: bool) -> io::Result<()> {
        if let Some(stderr) = &mut child.stderr {
            stderr.read_to_string(&mut self.error_output)?;
        }
        let status = child.wait()?;
        self.calls += 1;
        if must_succeed && !status.success() {
            return Err(io::Error::other(format!("a fetcher failed: {status}: {}", self.error_output)));
        }
        Ok(())
    }
}

fn read_index(pipe: &mut impl Read, part: &NeededPackagePart) -> io::Result<usize> {
    let mut index = Vec::new();
    pipe.read_to_end(&mut index)?;
    let is_whole = index.len() == part.length && index.ends_with(b"</html>\n");
    if is_whole { Ok(index.len()) } else { Err(unexpected_bytes_error("the index", index.len())) }
}

/// Reads the needed part of a package from `pipe`, and checks the blocks of the package against
/// their digests. Returns the number of bytes read.
fn read_package(pipe: &mut impl Read, part: &NeededPackagePart) -> io::Result<usize> {
    let mut pipe = BufReader::with_capacity(HEADER_READ, pipe);
    // The header ends at the first zero behind gzip's own ten bytes, which hold some.
    let mut header = vec![0; 10];
    pipe.read_exact(&mut header)?;
    pipe.read_until(0, &mut header)?;
    if header.last() != Some(&0) {
        return Err(unexpected_bytes_error(&part.name, header.len()));
    }
    let text = String::from_utf8_lossy(&header[10..header.len() - 1]).into_owned();
    let digests = text.split("\n\n").nth(1).unwrap_or_default().lines().map(str::to_owned);
    let mut read = header.len();
    let mut block = vec![0; BLOCK];
    for digest in digests {
        let mut filled = 0;
        while filled < BLOCK {
            match pipe.read(&mut block[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        read += filled;
        if hex(&block[..filled]) != digest {
            return Err(unexpected_bytes_error(&part.name, read));
        }
        // The block is passed on now; if its reader had stopped before this block, this is when the
        // checker notices.
        if read - header.len() >= part.needed.div_ceil(BLOCK).max(1) * BLOCK + filled {
            return Ok(read);
        }
    }
    if read == part.length { Ok(read) } else { Err(unexpected_bytes_error(&part.name, read)) }
}

fn unexpected_bytes_error(what: &str, at: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not what the mirror has, before byte {at}"))
}

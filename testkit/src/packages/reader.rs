//! Who reads the mirror: one fetcher a file, its environment wiped, its output checked block by block and left when enough was seen.

use std::io::{self, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::catalogue::hex;
use super::{BLOCK, Catalogue, Package};

/// How files are fetched.
pub struct Reader<'a> {
    /// The program and its options, as a `FETCH_CMD` split at blanks.
    pub fetcher: &'a [String],
    /// The URL of the index: all names are behind it.
    pub base: &'a str,
    /// Variables of the fetcher besides the few that it always has.
    pub environment: &'a [(String, String)],
}

/// What a run took.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// From the first call to the end of the last.
    pub wall: Duration,
    /// Fetchers started.
    pub calls: u64,
    /// Bytes that the reader read.
    pub read: u64,
    /// What the fetchers said on standard error.
    pub said: String,
}

impl Reader<'_> {
    /// Reads the index, then each package as far as it is wanted. One is open at a time, and the next begins when the last
    /// fetcher is gone.
    ///
    /// # Errors
    /// When a fetcher cannot be started, or what it brings is not what the mirror has.
    pub fn run(&self, catalogue: &Catalogue) -> io::Result<Run> {
        let mut run = Run::default();
        let began = Instant::now();
        let mut index = Vec::new();
        let (mut child, mut pipe) = self.open("")?;
        pipe.read_to_end(&mut index)?;
        drop(pipe);
        run.close(&mut child, true)?;
        run.read += index.len() as u64;
        if index != catalogue.index() {
            return Err(wrong("the index", index.len()));
        }
        for package in catalogue.packages() {
            let (mut child, mut pipe) = self.open(&package.name)?;
            let read = read_package(&mut pipe, package)?;
            run.read += read as u64;
            drop(pipe);
            run.close(&mut child, package.is_wanted_whole())?;
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
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipe = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((child, pipe))
    }
}

impl Run {
    fn close(&mut self, child: &mut Child, must_succeed: bool) -> io::Result<()> {
        if let Some(stderr) = &mut child.stderr {
            stderr.read_to_string(&mut self.said)?;
        }
        let status = child.wait()?;
        self.calls += 1;
        if must_succeed && !status.success() {
            return Err(io::Error::other(format!("a fetcher failed: {status}: {}", self.said)));
        }
        Ok(())
    }
}

/// Reads a package as its checker does; how much that was.
fn read_package(pipe: &mut impl Read, package: &Package) -> io::Result<usize> {
    let mut header = Vec::new();
    // The header ends at the first zero behind gzip's own ten bytes, which hold some.
    let mut piece = [0; 1];
    while header.len() < 10 || header.last() != Some(&0) {
        if pipe.read(&mut piece)? == 0 {
            return Err(wrong(&package.name, header.len()));
        }
        header.push(piece[0]);
        if header.len() == package.header {
            break;
        }
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
            return Err(wrong(&package.name, read));
        }
        // It is passed on now; and when its own reader had all it wanted before this block, that is when it finds out.
        if read - header.len() >= package.wanted.div_ceil(BLOCK).max(1) * BLOCK + filled {
            return Ok(read);
        }
    }
    if read == package.bytes.len() { Ok(read) } else { Err(wrong(&package.name, read)) }
}

fn wrong(what: &str, at: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not what the mirror has, before byte {at}"))
}

//! A site whose pages have versions and entity tags, for runs that fetch only what has changed.
//!
//! A request for `/day` begins the next day of the site: each page whose number is a multiple of
//! the period then gets new content. Each connection has its own thread.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use testkit::byte_pattern::BytePattern;

use crate::measure::RunMetrics;

/// The length of a page in bytes.
const PAGE: usize = 3000;

/// The maximum length of a request line in bytes.
const LINE: u64 = 4096;

/// A running site whose pages change from day to day. A request for `/day` starts the next day. The
/// site's threads end with the process.
pub(crate) struct VersionedSite {
    pub(crate) addr: SocketAddr,
    state: Arc<VersionedSiteState>,
}

/// The state of the site, which all connections share.
struct VersionedSiteState {
    pages: u64,
    period: Option<u64>,
    day: AtomicU64,
    counts: [AtomicU64; 3],
}

/// The replies that the site has sent since the last [`VersionedSite::start_run`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServedReplyCounts {
    /// The number of replies that contain a page.
    pub(crate) whole: u64,
    /// The number of 304 replies, which say that the page has not changed.
    pub(crate) unchanged: u64,
    /// The total number of content bytes.
    pub(crate) bytes: u64,
}

impl VersionedSite {
    /// Starts a site with this number of pages. Every `period`-th page changes each day, and the
    /// others never change; `None` means that no page ever changes.
    pub(crate) fn start(pages: u64, period: Option<u64>) -> io::Result<VersionedSite> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let state = Arc::new(VersionedSiteState { pages, period, day: AtomicU64::new(0), counts: Default::default() });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // A client that disconnects ends only its own connection.
                thread::spawn(move || drop(shared.serve(&stream)));
            }
        });
        Ok(VersionedSite { addr, state })
    }

    /// Starts a run: sets the counts to zero.
    pub(crate) fn start_run(&self) {
        self.state.counts.iter().for_each(|count| count.store(0, Ordering::SeqCst));
    }

    /// Returns the counts of the replies since the run began.
    pub(crate) fn replies(&self) -> ServedReplyCounts {
        let [whole, unchanged, bytes] = self.state.counts.each_ref().map(|count| count.load(Ordering::SeqCst));
        ServedReplyCounts { whole, unchanged, bytes }
    }

    /// Returns the number of pages.
    pub(crate) fn pages(&self) -> u64 {
        self.state.pages
    }

    /// Returns the number of pages that change each day.
    pub(crate) fn changing(&self) -> u64 {
        self.state.period.map_or(0, |period| self.state.pages.div_ceil(period))
    }

    /// Compares each file `N` of a directory with the current content of the page `/N`. Returns a
    /// message about the first difference.
    pub(crate) fn compare(&self, dir: &Path) -> Result<(), String> {
        for number in 0..self.state.pages {
            let file =
                std::fs::read(dir.join(number.to_string())).map_err(|error| format!("file {number}: {error}"))?;
            if file != self.state.page(number) {
                return Err(format!("wrong answer: file {number} is not the present page"));
            }
        }
        Ok(())
    }
}

/// The check of the replies of a site whose pages change, and of the files that a client wrote.
pub(crate) struct ReplyCheck {
    pub(crate) site: Rc<VersionedSite>,
    /// The numbers of replies that the site has to send in the run. The number of bytes in this
    /// value is not compared.
    pub(crate) replies: ServedReplyCounts,
    /// The directory, below the working directory, of the files that the client wrote.
    pub(crate) files: PathBuf,
}

impl ReplyCheck {
    /// Returns the measurements `figures`, completed by the number of bytes that the site has sent.
    /// Returns a message if replies or files are wrong.
    pub(crate) fn check_replies(&self, figures: RunMetrics, work: &Path) -> Result<RunMetrics, String> {
        let sent = self.site.replies();
        if (sent.whole, sent.unchanged) != (self.replies.whole, self.replies.unchanged) {
            return Err(format!("wrong answer: {sent:?}, not {:?}", self.replies));
        }
        self.site.compare(&work.join(&self.files))?;
        Ok(RunMetrics { served_bytes: Some(sent.bytes), ..figures })
    }
}

impl VersionedSiteState {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        let mut writer = BufWriter::with_capacity(64 << 10, stream);
        let mut line = String::new();
        loop {
            let mut next_line = |line: &mut String| {
                line.clear();
                io::Read::take(&mut reader, LINE).read_line(line)
            };
            if next_line(&mut line)? == 0 {
                return writer.flush();
            }
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut tag = None;
            while next_line(&mut line)? > 2 {
                if let Some((name, value)) = line.split_once(':')
                    && name.eq_ignore_ascii_case("if-none-match")
                {
                    tag = Some(value.trim().to_owned());
                }
            }
            self.reply(&path, tag.as_deref(), &mut writer)?;
            // Replies to requests that arrived together are sent together.
            if reader.buffer().is_empty() {
                writer.flush()?;
            }
        }
    }

    fn reply(&self, path: &str, tag: Option<&str>, to: &mut impl Write) -> io::Result<()> {
        if path == "/day" {
            self.day.fetch_add(1, Ordering::SeqCst);
            return to.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
        }
        let number = path.trim_start_matches('/').parse().ok().filter(|number| *number < self.pages);
        let Some(number) = number else {
            return to.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        let current = format!("\"{number}-{}\"", self.version(number));
        let [whole, unchanged, bytes] = &self.counts;
        if tag == Some(&*current) {
            unchanged.fetch_add(1, Ordering::SeqCst);
            return write!(to, "HTTP/1.1 304 Not Modified\r\nETag: {current}\r\n\r\n");
        }
        whole.fetch_add(1, Ordering::SeqCst);
        bytes.fetch_add(PAGE as u64, Ordering::SeqCst);
        write!(to, "HTTP/1.1 200 OK\r\nETag: {current}\r\nContent-Length: {PAGE}\r\n\r\n")?;
        to.write_all(&self.page(number))
    }

    /// Returns the version of the page with this number: the number of the current day if the page
    /// changes each day, and 0 if it never changes.
    fn version(&self, number: u64) -> u64 {
        let changes = self.period.is_some_and(|period| number.is_multiple_of(period));
        if changes { self.day.load(Ordering::SeqCst) } else { 0 }
    }

    fn page(&self, number: u64) -> Vec<u8> {
        BytePattern::new(number + (self.version(number) << 32)).slice(0, PAGE)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn ask(site: &VersionedSite, requests: &str) -> String {
        let mut stream = TcpStream::connect(site.addr).unwrap();
        stream.write_all(requests.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        String::from_utf8_lossy(&reply).into_owned()
    }

    #[test]
    fn one_page_per_period_changes_each_day() {
        let site = VersionedSite::start(5, Some(3)).unwrap();
        let all = |tag: &str| -> String {
            (0..6)
                .map(|number| format!("GET /{number} HTTP/1.1\r\nif-none-match: \"{number}-{tag}\"\r\n\r\n"))
                .collect()
        };
        let reply = ask(&site, &all("x"));
        assert_eq!((reply.matches(" 200 OK").count(), reply.matches(" 404 ").count()), (5, 1));
        assert_eq!(site.replies(), ServedReplyCounts { whole: 5, unchanged: 0, bytes: 5 * PAGE as u64 });
        site.start_run();
        ask(&site, "GET /day HTTP/1.1\r\n\r\n");
        ask(&site, &all("0"));
        assert_eq!(site.replies(), ServedReplyCounts { whole: 2, unchanged: 3, bytes: 2 * PAGE as u64 });
        assert_eq!((site.pages(), site.changing()), (5, 2));
    }

    #[test]
    fn files_are_compared_with_current_pages() {
        let site = VersionedSite::start(2, Some(2)).unwrap();
        let dir = std::env::temp_dir().join(format!("haul-bench-versions-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert!(site.compare(&dir).is_err());
        (0..2).for_each(|number| std::fs::write(dir.join(number.to_string()), site.state.page(number)).unwrap());
        assert_eq!(site.compare(&dir), Ok(()));
        ask(&site, "GET /day HTTP/1.1\r\n\r\n");
        assert!(site.compare(&dir).unwrap_err().contains("file 0"));
        std::fs::remove_dir_all(dir).unwrap();
    }
}

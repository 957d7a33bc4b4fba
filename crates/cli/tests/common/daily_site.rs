//! A test server whose pages have entity tags, and change when the test begins another day.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A function that returns the page for a request target on a day; `None` for a 404.
type DailyPageFunction = dyn Fn(&str, usize) -> Option<String> + Send + Sync;

/// A running server whose pages change from day to day. Its threads end with the test.
pub struct DailySite {
    address: SocketAddr,
    day: Arc<AtomicUsize>,
}

impl DailySite {
    /// Starts a server on its first day, which is 1.
    pub fn start(page: impl Fn(&str, usize) -> Option<String> + Send + Sync + 'static) -> DailySite {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("the port is known");
        let day = Arc::new(AtomicUsize::new(1));
        let (today, page): (_, Arc<DailyPageFunction>) = (Arc::clone(&day), Arc::new(page));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (today, page) = (Arc::clone(&today), Arc::clone(&page));
                thread::spawn(move || serve(&stream, &today, &*page));
            }
        });
        DailySite { address, day }
    }

    /// Returns the URL of a request target, which begins with a slash.
    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// Sets the current day, which determines the pages.
    pub fn set_day(&self, day: usize) {
        self.day.store(day, Ordering::SeqCst);
    }
}

fn serve(stream: &TcpStream, day: &AtomicUsize, page: &DailyPageFunction) -> Option<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut head = String::new();
    loop {
        head.clear();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let target = head.split(' ').nth(1)?;
        let condition =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("if-none-match: ").map(str::to_owned));
        let Some(body) = page(target, day.load(Ordering::SeqCst)) else {
            writer.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok()?;
            continue;
        };
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let tag = format!("\"{:x}\"", hasher.finish());
        let reply = match condition {
            Some(condition) if condition == tag => format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n"),
            _ => format!("HTTP/1.1 200 OK\r\nETag: {tag}\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        };
        writer.write_all(reply.as_bytes()).ok()?;
    }
}

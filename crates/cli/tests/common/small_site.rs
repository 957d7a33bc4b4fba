//! A test server with a few pages, which the test defines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A page: its content type, and its content.
pub type SitePage = (&'static str, Vec<u8>);

/// A running server with a few pages. Its threads end with the test.
pub struct SmallSite {
    addr: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl SmallSite {
    /// Starts a server. `page` returns the page for a request target, `None` for a 404, and a page
    /// with the content type `redirect` for a redirect to its content.
    pub fn start(page: impl Fn(&str) -> Option<SitePage> + Send + Sync + 'static) -> SmallSite {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let addr = listener.local_addr().expect("the port is known");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, page) = (Arc::clone(&requests), Arc::new(page));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, page) = (Arc::clone(&log), Arc::clone(&page));
                thread::spawn(move || serve(stream, &log, &*page));
            }
        });
        SmallSite { addr, requests }
    }

    /// Starts a server with these pages: target, content type and text.
    pub fn of(pages: &[(&str, &'static str, &str)]) -> SmallSite {
        let page = |(target, kind, text): &(&str, &'static str, &str)| {
            ((*target).to_owned(), (*kind, text.as_bytes().to_vec()))
        };
        let pages: HashMap<String, SitePage> = pages.iter().map(page).collect();
        SmallSite::start(move |target| pages.get(target).cloned())
    }

    /// Returns the URL of a request target, which begins with a slash.
    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.addr)
    }

    /// Returns the targets of all requests so far, sorted.
    pub fn requests(&self) -> Vec<String> {
        let mut requests = self.requests.lock().expect("no thread has panicked").clone();
        requests.sort();
        requests
    }
}

fn serve(stream: TcpStream, log: &Mutex<Vec<String>>, page: &dyn Fn(&str) -> Option<SitePage>) {
    let Ok(copy) = stream.try_clone() else { return };
    let (mut reader, mut writer) = (BufReader::new(copy), stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut line = first.clone();
        while line.trim_end() != "" {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
        }
        let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
        log.lock().expect("no thread has panicked").push(target.clone());
        let found = page(&target);
        let reply = match found {
            None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
            Some(("redirect", to)) => {
                let to = String::from_utf8_lossy(&to).into_owned();
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").into_bytes()
            }
            Some((kind, body)) => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
                [head.as_bytes(), &body].concat()
            }
        };
        if writer.write_all(&reply).is_err() {
            return;
        }
    }
}

//! A test server that delays the responses of some pages until the test releases them.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use super::list;
use super::small_site::SmallSite;

/// A site with pages `/0`, `/1` and so on. Responses for pages from the number `open` on are
/// delayed until the test opens the gate.
pub struct GatedSite {
    pub site: SmallSite,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl GatedSite {
    pub fn start(open: usize) -> GatedSite {
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let waits = Arc::clone(&gate);
        let site = SmallSite::start(move |target| {
            let number: usize = target.trim_start_matches('/').parse().ok()?;
            if number >= open {
                let (is_open, changed) = &*waits;
                drop(changed.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
            }
            Some(("text/plain", format!("page {number}\n").into_bytes()))
        });
        GatedSite { site, gate }
    }

    pub fn open(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    pub fn list(&self, dir: &Path, count: usize) -> String {
        let path = list(dir, "list", (0..count).map(|number| self.site.url(&format!("/{number}"))));
        path.to_str().unwrap().to_owned()
    }
}

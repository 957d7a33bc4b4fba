//! The progress line: on a terminal only, and only when somebody may be waiting.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::plan::Global;

/// Nothing is drawn for what is over sooner.
const QUIET: Duration = Duration::from_millis(400);

/// The run's progress.
pub(super) struct Progress {
    began: Instant,
    wanted: bool,
    bar: OnceLock<ProgressBar>,
    over: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    length: AtomicU64,
}

impl Progress {
    pub(super) fn new(global: &Global) -> Self {
        Self {
            began: Instant::now(),
            wanted: global.progress && !global.silent && std::io::stderr().is_terminal(),
            bar: OnceLock::new(),
            over: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            length: AtomicU64::new(0),
        }
    }

    /// Since the run began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn transfer_over(&self, bytes: u64, failed: bool) {
        if !self.wanted {
            return;
        }
        self.over.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(failed), Ordering::Relaxed);
        if self.length.load(Ordering::Relaxed) == 0 {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        self.draw();
    }

    pub(super) fn body_begins(&self, length: Option<u64>) {
        self.length.store(length.unwrap_or(0), Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    pub(super) fn body_bytes(&self, bytes: usize) {
        if self.wanted {
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.draw();
        }
    }

    fn draw(&self) {
        let elapsed = self.began.elapsed();
        if elapsed < QUIET {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::new_spinner().with_style(style)
        });
        let (bytes, length) = (self.bytes.load(Ordering::Relaxed), self.length.load(Ordering::Relaxed));
        let rate = HumanBytes((bytes as f64 / elapsed.as_secs_f64()) as u64);
        let mut text = match length {
            0 => format!("{}  {rate}/s", HumanBytes(bytes)),
            length => format!("{} of {}  {rate}/s", HumanBytes(bytes), HumanBytes(length)),
        };
        let (over, failed) = (self.over.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        if over > 0 {
            text = format!("{over} done  {text}");
        }
        if failed > 0 {
            text = format!("{text}  {failed} failed");
        }
        bar.set_message(text);
        bar.tick();
    }

    /// Takes the line away, for something else to be printed.
    pub(super) fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.suspend(|| ());
            bar.finish_and_clear();
            bar.reset();
        }
    }
}

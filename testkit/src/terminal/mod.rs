//! Runs a program on a terminal of a given size, and returns what its user would see.
//!
//! ```
//! use std::process::Command;
//! use testkit::terminal::TerminalSession;
//!
//! let mut command = Command::new("sh");
//! command.args(["-c", "printf '12345\\rab\\n\\033[31mred\\033[0m'"]);
//! let session = TerminalSession::start(command, (20, 5)).unwrap();
//! let (code, screen) = session.end();
//! assert_eq!((code, screen.text().as_str()), (Some(0), "ab345\nred"));
//! assert_eq!(screen.marked_text(), "ab345\n{red}red{}");
//! ```

mod screen;
mod svg;

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

pub use screen::ScreenSnapshot;
pub use svg::picture;

/// The maximum time for which a test waits for the screen or for the end of the program.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A program that runs on a terminal.
pub struct TerminalSession {
    child: Child,
    terminal: OwnedFd,
    shown: Arc<EmulatedTerminal>,
    reader: Option<JoinHandle<()>>,
}

struct EmulatedTerminal {
    /// The bytes that the program has written, and the emulated terminal that displays them.
    parser: Mutex<(Vec<u8>, vt100::Parser)>,
    changed: Condvar,
}

impl EmulatedTerminal {
    fn lock(&self) -> MutexGuard<'_, (Vec<u8>, vt100::Parser)> {
        self.parser.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TerminalSession {
    /// Starts a program whose standard input, output and error are a new terminal with this number
    /// of columns and rows. `TERM` is `xterm-256color`, unless the command sets it.
    ///
    /// # Errors
    /// If the system has no terminal for the program, or the program cannot be started.
    pub fn start(command: Command, size: (u16, u16)) -> io::Result<TerminalSession> {
        Self::start_with(command, size, None)
    }

    /// Starts a program as [`TerminalSession::start`] does, but with `output` as its standard
    /// output.
    ///
    /// # Errors
    /// If the system has no terminal for the program, or the program cannot be started.
    pub fn start_with_output(
        command: Command,
        size: (u16, u16),
        output: impl Into<Stdio>,
    ) -> io::Result<TerminalSession> {
        Self::start_with(command, size, Some(output.into()))
    }

    fn start_with(mut command: Command, (columns, rows): (u16, u16), output: Option<Stdio>) -> io::Result<Self> {
        let terminal = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::grantpt(&terminal)?;
        rustix::pty::unlockpt(&terminal)?;
        let name = rustix::pty::ptsname(&terminal, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let far_end = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
        rustix::termios::tcsetwinsize(&far_end, window_size(columns, rows))?;
        let has_term = command.get_envs().any(|(name, _)| name == "TERM");
        if !has_term {
            command.env("TERM", "xterm-256color");
        }
        command.stdin(far_end.try_clone()?).stderr(far_end.try_clone()?);
        command.stdout(match output {
            Some(output) => output,
            None => far_end.try_clone()?.into(),
        });
        let child = command.spawn()?;
        // Closes the far ends in this process, so that reading ends when the program ends.
        drop((command, far_end));
        let parser = Mutex::new((Vec::new(), parser_of(columns, rows)));
        let shown = Arc::new(EmulatedTerminal { parser, changed: Condvar::new() });
        let (source, target) = (terminal.as_fd().try_clone_to_owned()?, Arc::clone(&shown));
        let reader = thread::spawn(move || read_terminal(File::from(source), &target));
        Ok(TerminalSession { child, terminal, shown, reader: Some(reader) })
    }

    /// Returns the current content of the terminal.
    pub fn screen(&self) -> ScreenSnapshot {
        ScreenSnapshot::from_vt100(self.shown.lock().1.screen())
    }

    /// Returns the bytes that the program has written to the terminal so far.
    pub fn output(&self) -> Vec<u8> {
        self.shown.lock().0.clone()
    }

    /// Waits until `holds` returns true for the screen, and returns the screen. `what` describes
    /// the expected screen in the panic message.
    ///
    /// # Panics
    /// The screen does not meet the condition within a minute.
    #[track_caller]
    pub fn wait_for(&self, what: &str, mut holds: impl FnMut(&ScreenSnapshot) -> bool) -> ScreenSnapshot {
        let end = Instant::now() + WAIT_TIMEOUT;
        let mut shown = self.shown.lock();
        loop {
            let screen = ScreenSnapshot::from_vt100(shown.1.screen());
            if holds(&screen) {
                return screen;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}, but the terminal shows:\n{}", screen.text());
            (shown, _) = self.shown.changed.wait_timeout(shown, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Changes the size of the terminal.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn resize(&self, columns: u16, rows: u16) {
        rustix::termios::tcsetwinsize(&self.terminal, window_size(columns, rows)).expect("a terminal");
        self.shown.lock().1.screen_mut().set_size(cells(rows), cells(columns));
    }

    /// Returns the id of the program's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the program. Returns its exit code, which is `None` after a signal, and
    /// the last screen.
    ///
    /// # Panics
    /// The program does not end within a minute.
    pub fn end(mut self) -> (Option<i32>, ScreenSnapshot) {
        let code = self.wait_for_end();
        (code, self.screen())
    }

    /// Waits for the end of the program, and returns its exit code. After this,
    /// [`TerminalSession::output`] returns all bytes that the program has written.
    ///
    /// # Panics
    /// The program does not end within a minute.
    pub fn wait_for_end(&mut self) -> Option<i32> {
        let end = Instant::now() + WAIT_TIMEOUT;
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
                None => panic!("the program runs on; the terminal shows:\n{}", self.screen().text()),
            }
        };
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        status.code()
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        // Ends the program after a failed test. This fails if the program has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parser_of(columns: u16, rows: u16) -> vt100::Parser {
    vt100::Parser::new(cells(rows), cells(columns), 0)
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a terminal has columns and rows")
}

fn window_size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Passes the bytes that programs write to a terminal to its emulation, until the last program that
/// has the terminal open has ended.
fn read_terminal(mut terminal: File, shown: &EmulatedTerminal) {
    let mut buffer = [0; 4096];
    loop {
        match terminal.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let mut guard = shown.lock();
                guard.0.extend_from_slice(&buffer[..count]);
                guard.1.process(&buffer[..count]);
                shown.changed.notify_all();
            }
        }
    }
}

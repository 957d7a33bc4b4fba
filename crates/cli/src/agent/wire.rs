//! The encoding of values in a frame between a call and the agent: numbers take eight bytes, a text
//! follows its length.
//!
//! ```
//! use haul_cli::agent::wire::{Reader, Writer};
//!
//! let mut writer = Writer::default();
//! writer.number(7).text("seven").maybe(Some(b"x"), |writer, bytes| writer.bytes(bytes));
//! let bytes = writer.into_bytes();
//! let mut reader = Reader::new(&bytes);
//! assert_eq!((reader.number()?, reader.text()?), (7, "seven".to_owned()));
//! assert_eq!(reader.maybe(Reader::bytes)?, Some(&b"x"[..]));
//! reader.end()?;
//! # Ok::<(), haul_cli::agent::wire::Malformed>(())
//! ```
//!
//! Both ends are one program of one version, so there are no field numbers and nothing optional:
//! what does not fit is [`Malformed`], and the call goes its way without the agent. (A serialiser's
//! derive on the engine's types was the alternative; it would make their private layout a contract,
//! and cost each build of the engine.)

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The bytes are no valid encoding of the expected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the agent speaks another language")
    }
}

impl std::error::Error for Malformed {}

/// Writes values one after the other.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Returns the bytes written so far.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// A number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Yes or no.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.bytes.push(u8::from(flag));
        self
    }

    /// Bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// A path.
    pub fn path(&mut self, path: &Path) -> &mut Self {
        self.bytes(path.as_os_str().as_bytes())
    }

    /// A time span, to the microsecond.
    pub fn time(&mut self, time: Duration) -> &mut Self {
        self.number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    /// Writes an optional value: a flag, then the value if there is one.
    pub fn maybe<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T) -> &mut Self) -> &mut Self {
        self.flag(value.is_some());
        match value {
            Some(value) => write(self, value),
            None => self,
        }
    }

    /// A list.
    pub fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
        self
    }
}

/// Takes values out again, in the same order.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Over these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A number.
    ///
    /// # Errors
    /// [`Malformed`], as all others.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?))
    }

    /// A number that a smaller type holds.
    ///
    /// # Errors
    /// [`Malformed`], also when it does not.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.number()?).map_err(|_| Malformed)
    }

    /// Yes or no.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// Bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.small()?;
        self.take(count)
    }

    /// A text.
    ///
    /// # Errors
    /// [`Malformed`], also when it is not UTF-8.
    pub fn text(&mut self) -> Result<String, Malformed> {
        std::str::from_utf8(self.bytes()?).map(str::to_owned).map_err(|_| Malformed)
    }

    /// A path.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn path(&mut self) -> Result<PathBuf, Malformed> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()).into())
    }

    /// A time span.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn time(&mut self) -> Result<Duration, Malformed> {
        Ok(Duration::from_micros(self.number()?))
    }

    /// Reads an optional value: a flag, then the value if there is one.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Malformed>) -> Result<Option<T>, Malformed> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// A list.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count: usize = self.small()?;
        // Each item has a byte at least, so a false count cannot make us reserve more than came.
        if count > self.rest.len() {
            return Err(Malformed);
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// [`Malformed`] when there is more.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

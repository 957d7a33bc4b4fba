//! The encoding of values in messages to and from the agent. A number is eight bytes, and a text is
//! preceded by its length.
//!
//! ```
//! use haul_cli::agent::encoding::{FrameReader, FrameValue, FrameWriter};
//!
//! let mut writer = FrameWriter::default();
//! (7_u64, Some("seven".to_owned())).put(&mut writer);
//! let bytes = writer.into_bytes();
//! let mut reader = FrameReader::new(&bytes);
//! assert_eq!(<(u64, Option<String>)>::get(&mut reader)?, (7, Some("seven".to_owned())));
//! reader.end()?;
//! # Ok::<(), haul_cli::agent::encoding::MalformedFrame>(())
//! ```
//!
//! The macro `frame_fields!` encodes a struct by a table of its fields, from which it generates
//! both the writer and the reader. So each field is named once, and neither side can forget it.
//!
//! Caller and agent are the same program in the same version. So there are no field numbers and no
//! optional fields: bytes that do not fit are [`MalformedFrame`], and the caller fetches without
//! the agent. (Deriving a serialiser for the engine's types was the alternative. It would make
//! their private layout a contract, and lengthen each build of the engine.)

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The error for bytes that are not a valid encoding of the expected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedFrame;

impl fmt::Display for MalformedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the agent does not speak this protocol")
    }
}

impl std::error::Error for MalformedFrame {}

/// Encodes values one after the other into a buffer.
#[derive(Debug, Default)]
pub struct FrameWriter {
    bytes: Vec<u8>,
}

impl FrameWriter {
    /// Returns the bytes of all values that were written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends the number of `bytes`, then `bytes` themselves.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        (bytes.len() as u64).put(self);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Decodes values in the order in which [`FrameWriter`] encoded them.
#[derive(Debug)]
pub struct FrameReader<'a> {
    rest: &'a [u8],
}

impl<'a> FrameReader<'a> {
    /// Returns a reader of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], MalformedFrame> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(MalformedFrame)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a byte string, which is preceded by its length.
    ///
    /// # Errors
    /// [`MalformedFrame`] if the frame ends before the string does.
    pub fn get_bytes(&mut self) -> Result<&'a [u8], MalformedFrame> {
        let count = usize::get(self)?;
        self.take(count)
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// [`MalformedFrame`] if unread bytes remain.
    pub fn end(self) -> Result<(), MalformedFrame> {
        if self.rest.is_empty() { Ok(()) } else { Err(MalformedFrame) }
    }
}

/// A value that can be encoded into a frame, and decoded from it.
pub trait FrameValue: Sized {
    /// Appends the encoding of this value to the frame.
    fn put(&self, writer: &mut FrameWriter);

    /// Reads the value that [`FrameValue::put`] wrote.
    ///
    /// # Errors
    /// [`MalformedFrame`] if the bytes are not a value of this type.
    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame>;
}

/// Implements [`FrameValue`] for a struct by a table of the fields that are sent.
///
/// `unsent` lists all other fields. The decoded struct has the values of the struct after `from` in
/// these fields. A new field fails to compile until it is in one of the two lists. A
/// `non_exhaustive` struct is declared `as open` and has no list of unsent fields.
macro_rules! frame_fields {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl crate::agent::encoding::FrameValue for $type {
            fn put(&self, writer: &mut crate::agent::encoding::FrameWriter) {
                let Self { $($field),+ } = self;
                $($field.put(writer);)+
            }

            fn get(
                reader: &mut crate::agent::encoding::FrameReader<'_>,
            ) -> Result<Self, crate::agent::encoding::MalformedFrame> {
                Ok(Self { $($field: crate::agent::encoding::FrameValue::get(reader)?),+ })
            }
        }
        frame_fields!(@test $type { $($field),+ });
    };
    ($type:ty { $($field:ident),+ $(,)? } unsent { $($left:ident),+ $(,)? } from $rest:expr) => {
        impl crate::agent::encoding::FrameValue for $type {
            fn put(&self, writer: &mut crate::agent::encoding::FrameWriter) {
                let Self { $($field,)+ $($left: _),+ } = self;
                $($field.put(writer);)+
            }

            fn get(
                reader: &mut crate::agent::encoding::FrameReader<'_>,
            ) -> Result<Self, crate::agent::encoding::MalformedFrame> {
                Ok(Self { $($field: crate::agent::encoding::FrameValue::get(reader)?,)+ ..$rest })
            }
        }
        frame_fields!(@test $type { $($field),+ });
    };
    ($type:ty as open { $($field:ident),+ $(,)? } from $rest:expr) => {
        impl crate::agent::encoding::FrameValue for $type {
            fn put(&self, writer: &mut crate::agent::encoding::FrameWriter) {
                $(self.$field.put(writer);)+
            }

            fn get(
                reader: &mut crate::agent::encoding::FrameReader<'_>,
            ) -> Result<Self, crate::agent::encoding::MalformedFrame> {
                let mut value = $rest;
                $(value.$field = crate::agent::encoding::FrameValue::get(reader)?;)+
                Ok(value)
            }
        }
        frame_fields!(@test $type { $($field),+ });
    };
    (@test $type:ty { $($field:ident),+ }) => {
        #[cfg(test)]
        impl crate::agent::encoding::FrameFields for $type {
            fn encoded_fields(&self) -> Vec<(&'static str, Vec<u8>)> {
                vec![$((stringify!($field), crate::agent::encoding::encoded(&self.$field))),+]
            }
        }
    };
}
pub(crate) use frame_fields;

/// Implements [`FrameValue`] for an enum without data by a table of its variants and their numbers.
/// A `non_exhaustive` enum is declared `as open`: a variant that is not in the table is encoded as
/// a number that fails to decode.
macro_rules! frame_numbers {
    ($type:ty { $($variant:ident = $number:literal),+ $(,)? }) => {
        frame_numbers!(@impl $type { $($variant = $number),+ } {});
    };
    ($type:ty as open { $($variant:ident = $number:literal),+ $(,)? }) => {
        frame_numbers!(@impl $type { $($variant = $number),+ } { _ => u64::MAX });
    };
    (@impl $type:ty { $($variant:ident = $number:literal),+ } { $($other:tt)* }) => {
        impl crate::agent::encoding::FrameValue for $type {
            fn put(&self, writer: &mut crate::agent::encoding::FrameWriter) {
                let number: u64 = match self {
                    $(Self::$variant => $number,)+
                    $($other)*
                };
                number.put(writer);
            }

            fn get(
                reader: &mut crate::agent::encoding::FrameReader<'_>,
            ) -> Result<Self, crate::agent::encoding::MalformedFrame> {
                match u64::get(reader)? {
                    $($number => Ok(Self::$variant),)+
                    _ => Err(crate::agent::encoding::MalformedFrame),
                }
            }
        }
    };
}
pub(crate) use frame_numbers;

/// Encodes each field of a struct separately, so that tests can compare structs field by field.
#[cfg(test)]
pub(crate) trait FrameFields {
    /// Returns the name and the encoding of each field that `frame_fields!` lists.
    fn encoded_fields(&self) -> Vec<(&'static str, Vec<u8>)>;
}

/// Returns the encoding of one value, for tests.
#[cfg(test)]
pub(crate) fn encoded(value: &impl FrameValue) -> Vec<u8> {
    let mut writer = FrameWriter::default();
    value.put(&mut writer);
    writer.into_bytes()
}

impl FrameValue for u64 {
    fn put(&self, writer: &mut FrameWriter) {
        writer.bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        Ok(u64::from_le_bytes(reader.take(8)?.try_into().map_err(|_| MalformedFrame)?))
    }
}

/// Implements [`FrameValue`] for smaller integer types, which are encoded in eight bytes as well.
macro_rules! small_numbers {
    ($($type:ty),+) => {
        $(impl FrameValue for $type {
            fn put(&self, writer: &mut FrameWriter) {
                u64::try_from(*self).unwrap_or(u64::MAX).put(writer);
            }

            fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
                Self::try_from(u64::get(reader)?).map_err(|_| MalformedFrame)
            }
        })+
    };
}
small_numbers!(u16, u32, usize);

impl FrameValue for bool {
    fn put(&self, writer: &mut FrameWriter) {
        writer.bytes.push(u8::from(*self));
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        match reader.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(MalformedFrame),
        }
    }
}

/// Implements [`FrameValue`] for types that are encoded as a length and bytes, such as `String`.
macro_rules! byte_strings {
    ($($type:ty: |$value:ident| $bytes:expr, |$read:ident| $from:expr;)+) => {
        $(impl FrameValue for $type {
            fn put(&self, writer: &mut FrameWriter) {
                let $value = self;
                writer.put_bytes($bytes);
            }

            fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
                let $read = reader.get_bytes()?;
                $from
            }
        })+
    };
}
byte_strings! {
    Vec<u8>: |value| value, |bytes| Ok(bytes.to_vec());
    Arc<[u8]>: |value| value, |bytes| Ok(bytes.into());
    String: |value| value.as_bytes(), |bytes| text(bytes).map(str::to_owned);
    Box<str>: |value| value.as_bytes(), |bytes| text(bytes).map(Box::from);
    PathBuf: |value| value.as_os_str().as_bytes(), |bytes| Ok(OsString::from_vec(bytes.to_vec()).into());
    SocketAddr: |value| value.to_string().as_bytes(), |bytes| text(bytes)?.parse().map_err(|_| MalformedFrame);
}

fn text(bytes: &[u8]) -> Result<&str, MalformedFrame> {
    std::str::from_utf8(bytes).map_err(|_| MalformedFrame)
}

/// Encodes a duration as its number of microseconds.
impl FrameValue for Duration {
    fn put(&self, writer: &mut FrameWriter) {
        u64::try_from(self.as_micros()).unwrap_or(u64::MAX).put(writer);
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        u64::get(reader).map(Duration::from_micros)
    }
}

/// Encodes a flag, then the value if there is one.
impl<T: FrameValue> FrameValue for Option<T> {
    fn put(&self, writer: &mut FrameWriter) {
        self.is_some().put(writer);
        if let Some(value) = self {
            value.put(writer);
        }
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        if bool::get(reader)? { T::get(reader).map(Some) } else { Ok(None) }
    }
}

impl<A: FrameValue, B: FrameValue> FrameValue for (A, B) {
    fn put(&self, writer: &mut FrameWriter) {
        self.0.put(writer);
        self.1.put(writer);
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        Ok((A::get(reader)?, B::get(reader)?))
    }
}

impl FrameValue for [u64; 4] {
    fn put(&self, writer: &mut FrameWriter) {
        self.iter().for_each(|number| number.put(writer));
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        Ok([u64::get(reader)?, u64::get(reader)?, u64::get(reader)?, u64::get(reader)?])
    }
}

/// Encodes the number of items, then the items.
impl<T: FrameValue> FrameValue for Vec<T> {
    fn put(&self, writer: &mut FrameWriter) {
        self.len().put(writer);
        self.iter().for_each(|item| item.put(writer));
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        let count = usize::get(reader)?;
        // Each item has a byte at least, so that a false count reserves no more than has arrived.
        if count > reader.rest.len() {
            return Err(MalformedFrame);
        }
        (0..count).map(|_| T::get(reader)).collect()
    }
}

impl<T: FrameValue + Clone> FrameValue for Arc<[T]> {
    fn put(&self, writer: &mut FrameWriter) {
        self.len().put(writer);
        self.iter().for_each(|item| item.put(writer));
    }

    fn get(reader: &mut FrameReader<'_>) -> Result<Self, MalformedFrame> {
        Vec::get(reader).map(Arc::from)
    }
}

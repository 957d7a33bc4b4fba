//! The encoding of values in messages to and from the agent. A number is eight bytes, and a text is
//! preceded by its length.
//!
//! ```
//! use haul_cli::agent::message_encoding::{AgentValueDecoder, AgentValue, AgentValueEncoder};
//!
//! let mut writer = AgentValueEncoder::default();
//! (7_u64, Some("seven".to_owned())).encode(&mut writer);
//! let bytes = writer.into_bytes();
//! let mut reader = AgentValueDecoder::new(&bytes);
//! assert_eq!(<(u64, Option<String>)>::decode(&mut reader)?, (7, Some("seven".to_owned())));
//! reader.check_end()?;
//! # Ok::<(), haul_cli::agent::message_encoding::MalformedAgentValue>(())
//! ```
//!
//! The macro `frame_fields!` encodes a struct by a table of its fields, from which it generates
//! both the writer and the reader. So each field is named once, and neither side can forget it.
//!
//! Caller and agent are the same program in the same version. So there are no field numbers and no
//! optional fields: bytes that do not fit are [`MalformedAgentValue`], and the caller fetches
//! without the agent. (Deriving a serialiser for the engine's types was the alternative. It would
//! make their private layout a contract, and lengthen each build of the engine.)

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The error for bytes of a message to or from the agent that do not encode a value of the expected
/// type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedAgentValue;

impl fmt::Display for MalformedAgentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the agent does not speak this protocol")
    }
}

impl std::error::Error for MalformedAgentValue {}

/// Encodes the values of a message to or from the agent (a background process that sends requests
/// for other haul processes), one after the other, into a buffer.
#[derive(Debug, Default)]
pub struct AgentValueEncoder {
    bytes: Vec<u8>,
}

impl AgentValueEncoder {
    /// Returns the bytes of all values that were encoded.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends the length of `bytes`, and then `bytes` themselves.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        (bytes.len() as u64).encode(self);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Decodes the values of a message to or from the agent, in the order in which
/// [`AgentValueEncoder`] encoded them.
#[derive(Debug)]
pub struct AgentValueDecoder<'a> {
    rest: &'a [u8],
}

impl<'a> AgentValueDecoder<'a> {
    /// Creates a decoder for the content of one message, which [`AgentValueEncoder`] encoded.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn read_bytes(&mut self, count: usize) -> Result<&'a [u8], MalformedAgentValue> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(MalformedAgentValue)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a byte string, which is preceded by its length.
    ///
    /// # Errors
    /// [`MalformedAgentValue`] if the frame ends before the string does.
    pub fn get_bytes(&mut self) -> Result<&'a [u8], MalformedAgentValue> {
        let count = usize::decode(self)?;
        self.read_bytes(count)
    }

    /// Checks that all bytes of the message were read.
    ///
    /// # Errors
    /// [`MalformedAgentValue`] if unread bytes remain.
    pub fn check_end(self) -> Result<(), MalformedAgentValue> {
        if self.rest.is_empty() { Ok(()) } else { Err(MalformedAgentValue) }
    }
}

/// A value that can be encoded into a message to or from the agent (a background process that sends
/// requests for other haul processes), and decoded from such a message.
pub trait AgentValue: Sized {
    /// Appends the encoding of this value to the message (frame).
    fn encode(&self, writer: &mut AgentValueEncoder);

    /// Reads the value that [`AgentValue::encode`] wrote.
    ///
    /// # Errors
    /// [`MalformedAgentValue`] if the bytes are not a value of this type.
    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue>;
}

/// Implements [`AgentValue`] for a struct, for example by
/// `frame_fields! { Login { user, scheme } unsent { cache } from Login::default() }`.
///
/// The first list names the fields that are encoded. The list `unsent` names all other fields. The
/// decoder takes their values from the struct after `from`. A new field of the struct fails to
/// compile until it is in one of the two lists.
///
/// A `non_exhaustive` struct has the words `as open` after its name and no list `unsent`. The
/// decoder takes all fields outside the first list from the struct after `from`.
macro_rules! frame_fields {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl crate::agent::message_encoding::AgentValue for $type {
            fn encode(&self, writer: &mut crate::agent::message_encoding::AgentValueEncoder) {
                let Self { $($field),+ } = self;
                $($field.encode(writer);)+
            }

            fn decode(
                reader: &mut crate::agent::message_encoding::AgentValueDecoder<'_>,
            ) -> Result<Self, crate::agent::message_encoding::MalformedAgentValue> {
                Ok(Self { $($field: crate::agent::message_encoding::AgentValue::decode(reader)?),+ })
            }
        }
        frame_fields!(@test $type { $($field),+ });
    };
    ($type:ty { $($field:ident),+ $(,)? } unsent { $($left:ident),+ $(,)? } from $rest:expr) => {
        impl crate::agent::message_encoding::AgentValue for $type {
            fn encode(&self, writer: &mut crate::agent::message_encoding::AgentValueEncoder) {
                let Self { $($field,)+ $($left: _),+ } = self;
                $($field.encode(writer);)+
            }

            fn decode(
                reader: &mut crate::agent::message_encoding::AgentValueDecoder<'_>,
            ) -> Result<Self, crate::agent::message_encoding::MalformedAgentValue> {
                Ok(Self { $($field: crate::agent::message_encoding::AgentValue::decode(reader)?,)+ ..$rest })
            }
        }
        frame_fields!(@test $type { $($field),+ });
    };
    ($type:ty as open { $($field:ident),+ $(,)? } from $rest:expr) => {
        impl crate::agent::message_encoding::AgentValue for $type {
            fn encode(&self, writer: &mut crate::agent::message_encoding::AgentValueEncoder) {
                $(self.$field.encode(writer);)+
            }

            fn decode(
                reader: &mut crate::agent::message_encoding::AgentValueDecoder<'_>,
            ) -> Result<Self, crate::agent::message_encoding::MalformedAgentValue> {
                let mut value = $rest;
                $(value.$field = crate::agent::message_encoding::AgentValue::decode(reader)?;)+
                Ok(value)
            }
        }
        frame_fields!(@test $type { $($field),+ });
    };
    (@test $type:ty { $($field:ident),+ }) => {
        #[cfg(test)]
        impl crate::agent::message_encoding::AgentFieldEncodingForTests for $type {
            fn encoded_fields(&self) -> Vec<(&'static str, Vec<u8>)> {
                vec![$((stringify!($field), crate::agent::message_encoding::encode_to_vec(&self.$field))),+]
            }
        }
    };
}
pub(crate) use frame_fields;

/// Implements [`AgentValue`] for an enum whose variants have no data. A table assigns a number to
/// each variant, such as `TlsVersion as open { V1_2 = 2, V1_3 = 3 }`. The words `as open` are for a
/// `non_exhaustive` enum, whose table may be incomplete: any other variant is encoded as a number
/// that fails to decode.
macro_rules! frame_numbers {
    ($type:ty { $($variant:ident = $number:literal),+ $(,)? }) => {
        frame_numbers!(@impl $type { $($variant = $number),+ } {});
    };
    ($type:ty as open { $($variant:ident = $number:literal),+ $(,)? }) => {
        frame_numbers!(@impl $type { $($variant = $number),+ } { _ => u64::MAX });
    };
    (@impl $type:ty { $($variant:ident = $number:literal),+ } { $($other:tt)* }) => {
        impl crate::agent::message_encoding::AgentValue for $type {
            fn encode(&self, writer: &mut crate::agent::message_encoding::AgentValueEncoder) {
                let number: u64 = match self {
                    $(Self::$variant => $number,)+
                    $($other)*
                };
                number.encode(writer);
            }

            fn decode(
                reader: &mut crate::agent::message_encoding::AgentValueDecoder<'_>,
            ) -> Result<Self, crate::agent::message_encoding::MalformedAgentValue> {
                match u64::decode(reader)? {
                    $($number => Ok(Self::$variant),)+
                    _ => Err(crate::agent::message_encoding::MalformedAgentValue),
                }
            }
        }
    };
}
pub(crate) use frame_numbers;

/// Encodes each field of a struct separately, so that tests can compare two structs field by field.
#[cfg(test)]
pub(crate) trait AgentFieldEncodingForTests {
    /// Returns the name and the encoding of each field that `frame_fields!` lists.
    fn encoded_fields(&self) -> Vec<(&'static str, Vec<u8>)>;
}

/// Returns the encoding of one value, for tests.
#[cfg(test)]
pub(crate) fn encode_to_vec(value: &impl AgentValue) -> Vec<u8> {
    let mut writer = AgentValueEncoder::default();
    value.encode(&mut writer);
    writer.into_bytes()
}

impl AgentValue for u64 {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        writer.bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        Ok(u64::from_le_bytes(reader.read_bytes(8)?.try_into().map_err(|_| MalformedAgentValue)?))
    }
}

/// Implements [`AgentValue`] for smaller integer types, which are encoded in eight bytes as
/// well.
macro_rules! small_numbers {
    ($($type:ty),+) => {
        $(impl AgentValue for $type {
            fn encode(&self, writer: &mut AgentValueEncoder) {
                u64::try_from(*self).unwrap_or(u64::MAX).encode(writer);
            }

            fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
                Self::try_from(u64::decode(reader)?).map_err(|_| MalformedAgentValue)
            }
        })+
    };
}
small_numbers!(u16, u32, usize);

impl AgentValue for bool {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        writer.bytes.push(u8::from(*self));
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        match reader.read_bytes(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(MalformedAgentValue),
        }
    }
}

/// Implements [`AgentValue`] for types that are encoded as a length and bytes, such as
/// `String`.
macro_rules! byte_strings {
    ($($type:ty: |$value:ident| $bytes:expr, |$read:ident| $from:expr;)+) => {
        $(impl AgentValue for $type {
            fn encode(&self, writer: &mut AgentValueEncoder) {
                let $value = self;
                writer.put_bytes($bytes);
            }

            fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
                let $read = reader.get_bytes()?;
                $from
            }
        })+
    };
}
byte_strings! {
    Vec<u8>: |value| value, |bytes| Ok(bytes.to_vec());
    Arc<[u8]>: |value| value, |bytes| Ok(bytes.into());
    String: |value| value.as_bytes(), |bytes| to_text(bytes).map(str::to_owned);
    Box<str>: |value| value.as_bytes(), |bytes| to_text(bytes).map(Box::from);
    PathBuf: |value| value.as_os_str().as_bytes(), |bytes| Ok(OsString::from_vec(bytes.to_vec()).into());
    SocketAddr: |value| value.to_string().as_bytes(), |bytes| to_text(bytes)?.parse().map_err(|_| MalformedAgentValue);
}

fn to_text(bytes: &[u8]) -> Result<&str, MalformedAgentValue> {
    std::str::from_utf8(bytes).map_err(|_| MalformedAgentValue)
}

/// Encodes a duration as its number of microseconds.
impl AgentValue for Duration {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        u64::try_from(self.as_micros()).unwrap_or(u64::MAX).encode(writer);
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        u64::decode(reader).map(Duration::from_micros)
    }
}

/// Encodes an optional value: first a flag that says whether it is present, then the value if it is
/// present.
impl<T: AgentValue> AgentValue for Option<T> {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        self.is_some().encode(writer);
        if let Some(value) = self {
            value.encode(writer);
        }
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        if bool::decode(reader)? { T::decode(reader).map(Some) } else { Ok(None) }
    }
}

impl<A: AgentValue, B: AgentValue> AgentValue for (A, B) {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        self.0.encode(writer);
        self.1.encode(writer);
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        Ok((A::decode(reader)?, B::decode(reader)?))
    }
}

impl AgentValue for [u64; 4] {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        self.iter().for_each(|number| number.encode(writer));
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        Ok([u64::decode(reader)?, u64::decode(reader)?, u64::decode(reader)?, u64::decode(reader)?])
    }
}

/// Encodes the number of items of the vector, then the items in order.
impl<T: AgentValue> AgentValue for Vec<T> {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        self.len().encode(writer);
        self.iter().for_each(|item| item.encode(writer));
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        let count = usize::decode(reader)?;
        // Each item has a byte at least, so that a false count reserves no more than has arrived.
        if count > reader.rest.len() {
            return Err(MalformedAgentValue);
        }
        (0..count).map(|_| T::decode(reader)).collect()
    }
}

impl<T: AgentValue + Clone> AgentValue for Arc<[T]> {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        self.len().encode(writer);
        self.iter().for_each(|item| item.encode(writer));
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        Vec::decode(reader).map(Arc::from)
    }
}

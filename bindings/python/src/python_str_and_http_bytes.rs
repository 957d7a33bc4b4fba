//! Converts between Python's text and HTTP's bytes. Python represents the bytes of field values as
//! Latin-1 text (PEP 3333).

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

/// The value of a Python argument that may be text or bytes (also `bytearray`, `memoryview`,
/// `array`).
pub(crate) enum TextOrBytes {
    /// The bytes of a bytes-like object.
    Bytes(Vec<u8>),
    /// The value of a `str`.
    Text(String),
}

impl TextOrBytes {
    /// Converts a Python value. Returns `None` if the value is neither a `str` nor a bytes-like
    /// object.
    pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> Option<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return text.to_str().ok().map(|text| Self::Text(text.to_owned()));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Some(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Ok(bytes) = value.cast::<PyByteArray>() {
            return Some(Self::Bytes(bytes.to_vec()));
        }
        // Uses a memoryview, because the stable ABI has no buffer interface before Python 3.11.
        let view = PyMemoryView::from(value).ok()?;
        let bytes = view.call_method0(pyo3::intern!(value.py(), "tobytes")).ok()?;
        bytes.cast::<PyBytes>().ok().map(|bytes| Self::Bytes(bytes.as_bytes().to_vec()))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.into_bytes(),
        }
    }
}

/// Encodes a field value: as Latin-1 if possible, else as UTF-8, like the Python packages
/// http.client and requests.
pub(crate) fn latin1_or_utf8(text: &str) -> Vec<u8> {
    if text.is_ascii() {
        return text.as_bytes().to_vec();
    }
    let narrow: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    narrow.unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Converts a received field value into Python text: each byte becomes the Latin-1 character with
/// the same number.
pub(crate) fn from_latin1<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => PyString::new(py, text),
        _ => PyString::new(py, &bytes.iter().map(|&b| char::from(b)).collect::<String>()),
    }
}

//! Encodes forms: `data=` and `params=` (application/x-www-form-urlencoded), and `files=`
//! (multipart/form-data, RFC 7578).

use haul::ErrorKind;
use haul_policy::multipart::{
    FormNameEscape, FormPart, FormPartContent, MultipartBoundary, MultipartLayout, MultipartPiece,
};
use haul_policy::urlencode::form_encode;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString};

use crate::error::refused_request_error;
use crate::python_str_and_http_bytes::TextOrBytes;

/// Encodes a mapping or an iterable of pairs as a form. A value that is a list (or another
/// iterable, but not text) becomes one pair for each item. A value of `None` is left out. Other
/// values are converted by `str()`.
#[pyfunction]
pub(crate) fn urlencode(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut out = String::new();
    if let Ok(dict) = data.cast_exact::<PyDict>() {
        for (key, value) in dict.iter() {
            push(&mut out, &key, &value)?;
        }
        return Ok(out);
    }
    let items = match data.getattr_opt(pyo3::intern!(py, "items"))? {
        Some(items) => items.call0()?,
        None => data.clone(),
    };
    for pair in items.try_iter()? {
        let pair = pair?;
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
            pair.extract().map_err(|_| PyValueError::new_err("cannot encode objects that are not 2-tuples"))?;
        push(&mut out, &key, &value)?;
    }
    Ok(out)
}

fn push(out: &mut String, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.is_none() {
        return Ok(());
    }
    let is_one =
        value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyInt>();
    if is_one || value.try_iter().is_err() {
        return push_one(out, key, value);
    }
    for value in value.try_iter()? {
        let value = value?;
        if !value.is_none() {
            push_one(out, key, &value)?;
        }
    }
    Ok(())
}

fn push_one(out: &mut String, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if !out.is_empty() {
        out.push('&');
    }
    out.push_str(&encoded(key)?);
    out.push('=');
    out.push_str(&encoded(value)?);
    Ok(())
}

fn encoded(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(form_encode(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(form_encode(bytes.as_bytes()));
    }
    Ok(form_encode(value.str()?.to_str()?.as_bytes()))
}

/// A part of a form: field name, file name, content type, further header fields, content. A file
/// name or content type of `None` is not sent.
type PythonFormPart<'py> = (String, Option<String>, Option<String>, Vec<(String, String)>, Bound<'py, PyAny>);

/// Encodes the parts of a form as multipart/form-data. Returns the body, and the Content-Type with
/// the boundary.
#[pyfunction]
pub(crate) fn multipart<'py>(
    py: Python<'py>,
    parts: Vec<PythonFormPart<'py>>,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let parts: Vec<FormPart> = parts
        .into_iter()
        .map(|(name, filename, content_type, fields, content)| {
            let content = TextOrBytes::from_python(&content)
                .ok_or_else(|| PyValueError::new_err("a part of a form has to be text or bytes"))?
                .into_bytes();
            let headers = fields.into_iter().map(|(name, value)| format!("{name}: {value}").into_bytes()).collect();
            Ok(FormPart {
                filename: filename.map(String::into_bytes),
                content_type,
                headers,
                content: FormPartContent::Bytes(content),
                ..FormPart::field(name, "")
            })
        })
        .collect::<PyResult<_>>()?;
    let mut entropy = [0; 16];
    aws_lc_rs::rand::fill(&mut entropy).map_err(|_| PyValueError::new_err("the system has no entropy"))?;
    let layout = MultipartLayout::new(&parts, &MultipartBoundary::new(entropy), FormNameEscape::Percent)
        .map_err(|error| refused_request_error(ErrorKind::Setup, error.to_string()))?;
    let literals: Vec<&[u8]> = layout
        .pieces
        .iter()
        .map(|piece| match piece {
            MultipartPiece::Literal(bytes) => bytes.as_slice(),
            // All contents are bytes, so there is no piece that is read from a source.
            MultipartPiece::Source { .. } => &[],
        })
        .collect();
    let body = match literals.as_slice() {
        [one] => PyBytes::new(py, one),
        many => PyBytes::new(py, &many.concat()),
    };
    Ok((body, layout.content_type))
}

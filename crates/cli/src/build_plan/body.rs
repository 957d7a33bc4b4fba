//! Resolves request bodies: joins the values of `-d` and similar options, reads their files, and
//! checks forms.

use std::path::{Path, PathBuf};

use haul_policy::multipart::{FormNameEscape, content_type_by_extension};
use haul_policy::urlencode;

use super::credentials::usage_error;
use super::{PlanBuilder, misused_option_error};
use crate::flags::header_value_parser::refuse_controls;
use crate::form::{FormOfAllOptions, ParsedFormPart, ParsedPartContent, ParsedPartHeaders};
use crate::parsed_args::{DataOptionKind, ParsedDataOption, TextOrFile};
use crate::plan::{
    FormArgs, FormPartArg, FormPartArgContent, FormPartSource, PlaceholderEncoding, PlaceholderSyntax, RequestBodyArg,
    ValueTemplate,
};
use crate::usage_error::{UsageError, UsageErrorReason};

/// The minimum size, 1 MiB, of a body file that is read while it is sent. A smaller file is read
/// into memory before the request is sent.
const MIN_STREAMED_SIZE: u64 = 1 << 20;

impl PlanBuilder<'_> {
    /// Returns the request body that the options `data` (`-d` and similar options) describe. The
    /// option values may contain placeholders such as `{}`, in the syntax that `placeholders`
    /// gives. `placeholders` also gives the encoding of the values that replace them. If
    /// `placeholders` is `None`, no text is a placeholder.
    pub(super) fn request_body(
        &mut self,
        data: Vec<ParsedDataOption>,
        placeholders: Option<(PlaceholderEncoding, PlaceholderSyntax)>,
    ) -> Result<RequestBodyArg, UsageError> {
        if let [
            ParsedDataOption {
                kind: DataOptionKind::Binary | DataOptionKind::Json, text: TextOrFile::File(path), ..
            },
        ] = data.as_slice()
        {
            let size = (path != Path::new("-")).then(|| self.file_size(path, data[0].kind.option())).transpose()?;
            if size.flatten().is_some_and(|size| size >= MIN_STREAMED_SIZE) {
                return Ok(RequestBodyArg::File(path.clone()));
            }
        }
        let joined = self.join_data(data, placeholders)?;
        Ok(match joined.literal_text() {
            Some(bytes) => RequestBodyArg::Bytes(bytes.to_vec()),
            None => RequestBodyArg::ByValue(joined),
        })
    }

    /// Joins the values of all `-d` and similar options to one request body.
    fn join_data(
        &mut self,
        data: Vec<ParsedDataOption>,
        placeholders: Option<(PlaceholderEncoding, PlaceholderSyntax)>,
    ) -> Result<ValueTemplate, UsageError> {
        let mut all = ValueTemplate::default();
        for ParsedDataOption { kind, name, text } in data {
            let is_file = matches!(text, TextOrFile::File(_));
            let mut bytes = self.read_text(text, kind.option())?;
            if is_file && kind == DataOptionKind::Data {
                bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
            }
            let mut text = match placeholders.filter(|_| !is_file) {
                Some((_, syntax)) if kind == DataOptionKind::UrlEncode => {
                    ValueTemplate::parse(&bytes, PlaceholderEncoding::Form, syntax)
                }
                Some((encoding, syntax)) => ValueTemplate::parse(&bytes, encoding, syntax),
                None => ValueTemplate::literal(&bytes),
            };
            if kind == DataOptionKind::UrlEncode {
                let mut named = ValueTemplate::default();
                if let Some(name) = name {
                    named.push_text(&[&name, &b"="[..]].concat());
                }
                named.append(text.map_texts(|text| urlencode::form_encode(text).into_bytes()));
                text = named;
            }
            if !all.is_empty() && kind != DataOptionKind::Json {
                all.push_text(b"&");
            }
            all.append(text);
        }
        Ok(all)
    }

    /// Returns the text that `-G` or `--url-query` appends to the query of each URL. Bytes that a
    /// URL must not contain are percent-encoded (curl sends them unchanged).
    ///
    /// If `syntax` is given, the option values may contain placeholders of that syntax. All other
    /// braces are then percent-encoded, so that they do not look like placeholders.
    pub(super) fn join_query(
        &mut self,
        query: Vec<ParsedDataOption>,
        get: Vec<ParsedDataOption>,
        syntax: Option<PlaceholderSyntax>,
    ) -> Result<Option<String>, UsageError> {
        let mut texts = Vec::new();
        for data in [query, get] {
            let text = self.join_data(data, syntax.map(|syntax| (PlaceholderEncoding::Form, syntax)))?;
            texts.push(text.map_texts(|text| escape_for_query(text, syntax)).to_source_text());
        }
        texts.retain(|text| !text.is_empty());
        let mut query = texts.join(&b'&');
        if self.persona.is_curl() {
            uppercase_escapes(&mut query);
        }
        let query = String::from_utf8_lossy(&query).into_owned();
        Ok(Some(query).filter(|query| !query.is_empty()))
    }

    pub(super) fn form(&mut self, parsed: FormOfAllOptions) -> Result<FormArgs, UsageError> {
        let escape = if parsed.backslash { FormNameEscape::Backslash } else { FormNameEscape::Percent };
        let form = FormArgs { parts: self.form_parts(parsed.into_parts())?, escape };
        let stdins = form.sources().iter().filter(|source| ***source == FormPartSource::Stdin).count();
        if stdins > 1 {
            return Err(misused_option_error("--form", "standard input can be read once only"));
        }
        Ok(form)
    }

    fn form_parts(&mut self, parsed: Vec<ParsedFormPart>) -> Result<Vec<FormPartArg>, UsageError> {
        parsed.into_iter().map(|part| self.form_part(part)).collect()
    }

    fn form_part(&mut self, parsed: ParsedFormPart) -> Result<FormPartArg, UsageError> {
        let mut filename = parsed.filename;
        let mut guessed = filename.as_deref().and_then(known_type);
        let content = match parsed.content {
            ParsedPartContent::Bytes(bytes) => FormPartArgContent::Bytes(bytes),
            ParsedPartContent::List(parts) => {
                guessed = None;
                FormPartArgContent::Mixed(self.form_parts(parts)?)
            }
            ParsedPartContent::File { path, named } => {
                let own = path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
                let is_stdin = path == Path::new("-");
                guessed = match (named, is_stdin) {
                    // The name that is sent to the server, then the file's own.
                    (true, false) => guessed.or_else(|| Some(content_type_by_extension(&own))),
                    // A value is text anyhow, which goes without saying.
                    (false, false) => known_type(&own).filter(|kind| *kind != "text/plain"),
                    (_, true) => guessed,
                };
                if named {
                    filename = filename.or(Some(own));
                }
                // curl holds standard input in memory, so that the form's length is known.
                if is_stdin && (self.persona.is_curl() || parsed.encoder.is_some()) {
                    FormPartArgContent::Bytes(self.read_file(&path, "--form")?)
                } else {
                    FormPartArgContent::Source(self.form_part_source(path)?)
                }
            }
        };
        let encoder = parsed.encoder.filter(|_| !matches!(content, FormPartArgContent::Mixed(_)));
        let mut headers = self.part_header_lines(parsed.headers)?;
        if let Some(encoder) = encoder
            && !headers.iter().any(|line| has_field_name(line, "Content-Transfer-Encoding"))
        {
            headers.insert(0, format!("Content-Transfer-Encoding: {}", encoder.name()).into_bytes());
        }
        Ok(FormPartArg {
            name: parsed.name,
            filename,
            content_type: parsed.content_type.or(guessed.map(str::to_owned)),
            headers,
            encoder,
            content,
        })
    }

    /// Returns the source for a file of a form (`-F NAME=@FILE`). Unless haul acts as curl, a file
    /// that cannot be read is an error now, before any request is sent. If haul acts as curl, the
    /// error occurs when the form is sent, so that `-s` and `-w` apply to it.
    fn form_part_source(&mut self, path: PathBuf) -> Result<FormPartSource, UsageError> {
        if path == Path::new("-") {
            return Ok(FormPartSource::Stdin);
        }
        if !self.persona.is_curl() {
            self.file_size(&path, "--form")?;
        }
        Ok(FormPartSource::File(path))
    }

    pub(super) fn file_size(&mut self, path: &Path, option: &str) -> Result<Option<u64>, UsageError> {
        self.files.size(path).map_err(|error| usage_error(option, UsageErrorReason::unreadable_file(path, &error)))
    }

    fn part_header_lines(&mut self, parsed: Vec<ParsedPartHeaders>) -> Result<Vec<Vec<u8>>, UsageError> {
        let mut lines = Vec::new();
        for line in parsed {
            let path = match line {
                ParsedPartHeaders::Text(line) => {
                    lines.push(line);
                    continue;
                }
                ParsedPartHeaders::File(path) => path,
            };
            let first = lines.len();
            let text = match self.read_file(&path, "--form") {
                Ok(text) => text,
                // In curl, a file that cannot be read adds no lines, and is no error.
                Err(error) if self.persona.is_curl() => {
                    if let UsageErrorReason::Read { path, error } = error.reason() {
                        self.warnings.push(format!("Cannot read from {path}: {error}"));
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            for line in text.split(|&byte| byte == b'\n') {
                let goes_on = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) && lines.len() > first;
                let text = line.trim_ascii();
                if text.is_empty() || line.starts_with(b"#") {
                    continue;
                }
                refuse_controls(text).map_err(|reason| usage_error("--form", reason))?;
                match lines.last_mut() {
                    // As by curl: with the blanks that it begins with.
                    Some(last) if goes_on => last.extend_from_slice(line.trim_ascii_end()),
                    _ => lines.push(text.to_vec()),
                }
            }
        }
        Ok(lines)
    }
}

/// Returns true if the header line has the field name `name`, in any letter case.
fn has_field_name(line: &[u8], name: &str) -> bool {
    let own = line.split(|&byte| byte == b':').next().unwrap_or_default();
    own.eq_ignore_ascii_case(name.as_bytes())
}

/// Returns the media type that belongs to the extension of a file's name. Returns `None` for an
/// unknown extension.
fn known_type(filename: &[u8]) -> Option<&'static str> {
    Some(content_type_by_extension(filename)).filter(|kind| *kind != "application/octet-stream")
}

/// Changes the hexadecimal digits of percent-encoded bytes to upper case, as curl does in a query
/// that it adds to a URL.
fn uppercase_escapes(query: &mut [u8]) {
    let mut at = 0;
    while at + 2 < query.len() {
        let is_escape = query[at] == b'%' && query[at + 1..at + 3].iter().all(u8::is_ascii_hexdigit);
        if is_escape {
            query[at + 1..at + 3].make_ascii_uppercase();
        }
        at += if is_escape { 3 } else { 1 };
    }
}

/// Percent-encodes the bytes that a query must not contain, and the text that would look like a
/// placeholder of this syntax.
fn escape_for_query(text: &[u8], syntax: Option<PlaceholderSyntax>) -> Vec<u8> {
    let mut query = String::with_capacity(text.len());
    for (at, &byte) in text.iter().enumerate() {
        let is_hole = match syntax {
            None => false,
            Some(PlaceholderSyntax::Value) => text[at..].starts_with(b"{}"),
            Some(PlaceholderSyntax::Column) => matches!(byte, b'{' | b'}'),
        };
        match byte {
            b'!'..=b'~' if byte != b'#' && !is_hole => query.push(char::from(byte)),
            _ => query.push_str(&urlencode::percent_encode(&[byte])),
        }
    }
    query.into_bytes()
}

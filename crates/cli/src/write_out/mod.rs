//! The format of `-w`, which is printed after each transfer, as in curl.
//!
//! `%{name}` is a variable, and `%%` a percent sign. `\n`, `\r` and `\t` have the same meaning as
//! in C. `%{stdout}` and `%{stderr}` select the stream for the text after them. Text after
//! `%{onerror}` is printed only if the transfer failed.
//!
//! ```
//! use haul_cli::program_persona::ProgramPersona;
//! use haul_cli::write_out::{WriteOutValues, WriteOut};
//!
//! let (format, warnings) = WriteOut::parse(br"%{http_code} %{url}\n");
//! assert!(warnings.is_empty());
//! let facts = WriteOutValues { response_code: 200, url: "http://h/", ..Default::default() };
//! let printed = format.render(&facts, ProgramPersona::Haul);
//! assert_eq!(printed.stdout, b"200 http://h/\n");
//! ```

mod certificates;
mod json;
mod render;
mod strftime_variable;
pub(crate) mod url_parts_as_written;
mod variable;

pub use render::WriteOutValues;
pub use variable::WriteOutVariable;

use std::path::PathBuf;

use crate::program_persona::ProgramPersona;
use crate::usage_error::printable;

/// The beginning of the warning about a variable that `-w` does not know.
pub(crate) const UNKNOWN_VARIABLE: &str = "unknown --write-out variable";

/// The parsed value (format) of `-w`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOut {
    tokens: Vec<WriteOutToken>,
}

/// One element of the format of `-w`: a text, a variable, or a directive such as `%{stderr}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutToken {
    /// Text that is printed unchanged.
    Text(Vec<u8>),
    /// `%{name}`: a variable of the transfer.
    Variable(WriteOutVariable),
    /// `%{json}`: all variables, as a JSON object.
    Json,
    /// `%{header_json}`: all header fields of the last response, as a JSON object.
    HeaderJson,
    /// `%header{name}`: the value of the first header field with this name.
    Field(String),
    /// `%header{name:all:separator}`: the values of all header fields with this name, including the
    /// fields of followed redirects. The two strings are the name and the separator.
    Fields(String, String),
    /// `%time{format}`: the time at which the format is printed. The string is a format of
    /// strftime(3).
    Time(String),
    /// `%{stdout}`, `%{stderr}` or `%output{file}`: the destination of the text after it.
    Stream(WriteOutDestination),
    /// `%{onerror}`: the rest of the format is printed only if the transfer has failed.
    OnError,
}

/// The destination of a part of the text that `-w` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutDestination {
    /// The text is printed on standard output.
    Stdout,
    /// The text is printed on standard error.
    Stderr,
    /// The text is written to the file with this name. If the flag is true, it is appended; if not,
    /// the file is truncated first.
    File(PathBuf, bool),
}

/// The text that `-w` prints for one transfer, separated by destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderedWriteOut {
    /// The part of the text for standard output.
    pub stdout: Vec<u8>,
    /// The part of the text for standard error.
    pub stderr: Vec<u8>,
    /// The parts of the text for files, in order. Each has the name of the file, a flag that is
    /// true if the text is appended to the file, and the text.
    pub files: Vec<(PathBuf, bool, Vec<u8>)>,
}

impl RenderedWriteOut {
    fn buffer_for(&mut self, stream: &WriteOutDestination) -> &mut Vec<u8> {
        match stream {
            WriteOutDestination::Stdout => &mut self.stdout,
            WriteOutDestination::Stderr => &mut self.stderr,
            WriteOutDestination::File(path, adds) => {
                if self.files.last().is_none_or(|(other, ..)| other != path) {
                    self.files.push((path.clone(), *adds, Vec::new()));
                }
                let last = self.files.len() - 1;
                &mut self.files[last].2
            }
        }
    }
}

impl WriteOut {
    /// Returns true if the format of `-w` prints the result of verifying the server's certificate.
    pub fn prints_verify_result(&self) -> bool {
        self.tokens
            .iter()
            .any(|token| matches!(token, WriteOutToken::Json | WriteOutToken::Variable(WriteOutVariable::VerifyResult)))
    }

    /// Returns true if the format of `-w` prints the result of verifying a proxy's certificate.
    pub fn prints_proxy_verify_result(&self) -> bool {
        let prints = |token: &WriteOutToken| {
            matches!(token, WriteOutToken::Json | WriteOutToken::Variable(WriteOutVariable::ProxyVerifyResult))
        };
        self.tokens.iter().any(prints)
    }

    /// Returns true if the format of `-w` prints the server's certificates or their number.
    pub fn shows_certificates(&self) -> bool {
        let shows = |token: &WriteOutToken| {
            matches!(
                token,
                WriteOutToken::Json | WriteOutToken::Variable(WriteOutVariable::Certs | WriteOutVariable::NumCerts)
            )
        };
        self.tokens.iter().any(shows)
    }

    /// Returns the destinations to which the format of `-w` switches.
    pub fn streams(&self) -> impl Iterator<Item = &WriteOutDestination> {
        self.tokens.iter().filter_map(|token| match token {
            WriteOutToken::Stream(stream) => Some(stream),
            _ => None,
        })
    }

    /// Parses the value of `-w`. Returns the parsed format, and warnings about unknown variables,
    /// for which nothing is printed.
    pub fn parse(format: &[u8]) -> (WriteOut, Vec<String>) {
        let mut tokens = WriteOutTokenCollector::default();
        let mut warnings = Vec::new();
        let mut rest = format;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte == b'%'
                && let Some((token, behind)) = parse_token_with_argument(after)
            {
                tokens.push(token);
                rest = behind;
                continue;
            }
            match (byte, after.first()) {
                (b'%', Some(b'{')) => {
                    let Some(close) = after.iter().position(|&byte| byte == b'}') else {
                        tokens.push_text(b"%{");
                        rest = &after[1..];
                        continue;
                    };
                    let name = &after[1..close];
                    rest = &after[close + 1..];
                    match parse_named_token(name) {
                        Some(token) => tokens.push(token),
                        None => warnings.push(format!("{UNKNOWN_VARIABLE}: '{}'", printable(name))),
                    }
                }
                (b'%', Some(b'%')) => {
                    tokens.push_text(b"%");
                    rest = &after[1..];
                }
                // As by curl: what stands behind it is taken with it, so that `100%\n` has no new
                // line.
                (b'%', Some(&other)) => {
                    tokens.push_text(&[b'%', other]);
                    rest = &after[1..];
                }
                (b'\\', Some(&letter)) => {
                    match letter {
                        b'n' => tokens.push_text(b"\n"),
                        b'r' => tokens.push_text(b"\r"),
                        b't' => tokens.push_text(b"\t"),
                        other => tokens.push_text(&[b'\\', other]),
                    }
                    rest = &after[1..];
                }
                _ => tokens.push_text(&[byte]),
            }
        }
        (WriteOut { tokens: tokens.all }, warnings)
    }

    /// Returns true if the format of `-w` prints header fields of redirects that were followed.
    pub fn prints_redirect_fields(&self) -> bool {
        self.tokens.iter().any(|token| matches!(token, WriteOutToken::Fields(..)))
    }

    /// Returns the elements of the format of `-w` in order.
    pub fn tokens(&self) -> &[WriteOutToken] {
        &self.tokens
    }

    /// Returns the text that `-w` prints for one transfer, whose values are `facts`.
    pub fn render(&self, facts: &WriteOutValues<'_>, persona: ProgramPersona) -> RenderedWriteOut {
        let mut printed = RenderedWriteOut::default();
        let mut stream = &WriteOutDestination::Stdout;
        for token in &self.tokens {
            let into = printed.buffer_for(stream);
            match token {
                WriteOutToken::Text(text) => into.extend_from_slice(text),
                WriteOutToken::Variable(variable) => facts.append(*variable, into),
                WriteOutToken::Json => json::append_all_values(facts, persona, into),
                WriteOutToken::HeaderJson => json::append_header_fields(facts.head, into),
                WriteOutToken::Field(name) => {
                    into.extend_from_slice(facts.head.and_then(|head| head.get(name)).unwrap_or_default());
                }
                WriteOutToken::Fields(name, separator) => facts.append_all(name, separator, into),
                WriteOutToken::Time(format) => {
                    into.extend_from_slice(strftime_variable::format(format, facts.now).as_bytes())
                }
                WriteOutToken::Stream(other) => {
                    stream = other;
                    // The file is made even if nothing follows.
                    printed.buffer_for(stream);
                }
                WriteOutToken::OnError if facts.exit_code == 0 => return printed,
                WriteOutToken::OnError => {}
            }
        }
        printed
    }
}

/// Parses `header{name}`, `output{file}` or `time{format}` at the beginning of a text that follows
/// a `%`. Returns the element and the text after it. Returns `None` if the text begins with none of
/// these.
fn parse_token_with_argument(text: &[u8]) -> Option<(WriteOutToken, &[u8])> {
    if let Some(rest) = text.strip_prefix(b"header{") {
        // One that stands in a separator has a backslash before it.
        let is_end = |at: &usize| rest[*at] == b'}' && !rest[..*at].ends_with(b"\\");
        let (name, rest) = split(rest, (0..rest.len()).find(is_end)?)?;
        return Some((parse_header_token(name), rest));
    }
    let (rest, is_time) = match text.strip_prefix(b"time{") {
        Some(rest) => (rest, true),
        None => (text.strip_prefix(b"output{")?, false),
    };
    let (name, rest) = split(rest, rest.iter().position(|&byte| byte == b'}')?)?;
    let token = match (is_time, name.strip_prefix(">>")) {
        (true, _) => WriteOutToken::Time(name.to_owned()),
        (false, Some(name)) => WriteOutToken::Stream(WriteOutDestination::File(name.into(), true)),
        (false, None) => WriteOutToken::Stream(WriteOutDestination::File(name.into(), false)),
    };
    Some((token, rest))
}

fn split(text: &[u8], close: usize) -> Option<(&str, &[u8])> {
    Some((std::str::from_utf8(&text[..close]).ok()?, &text[close + 1..]))
}

fn parse_header_token(text: &str) -> WriteOutToken {
    match text.split_once(':') {
        Some((name, what)) if what.starts_with("all:") => WriteOutToken::Fields(name.to_owned(), unescaped(&what[4..])),
        _ => WriteOutToken::Field(text.to_owned()),
    }
}

/// Decodes the separator of `%header{name:all:separator}`: `\n`, `\r` and `\t` have the same
/// meaning as in C, and `\}` is a brace.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('}') => out.push('}'),
            Some(other) => out.extend(['\\', other]),
            None => {}
        }
    }
    out
}

fn parse_named_token(name: &[u8]) -> Option<WriteOutToken> {
    Some(match name {
        b"stdout" => WriteOutToken::Stream(WriteOutDestination::Stdout),
        b"stderr" => WriteOutToken::Stream(WriteOutDestination::Stderr),
        b"onerror" => WriteOutToken::OnError,
        b"json" => WriteOutToken::Json,
        b"header_json" => WriteOutToken::HeaderJson,
        name => WriteOutToken::Variable(WriteOutVariable::from_name(name)?),
    })
}

/// Collects the elements of the format of `-w`, and joins adjacent texts to one element.
#[derive(Default)]
struct WriteOutTokenCollector {
    all: Vec<WriteOutToken>,
}

impl WriteOutTokenCollector {
    fn push_text(&mut self, text: &[u8]) {
        match self.all.last_mut() {
            Some(WriteOutToken::Text(last)) => last.extend_from_slice(text),
            _ => self.all.push(WriteOutToken::Text(text.to_vec())),
        }
    }

    fn push(&mut self, token: WriteOutToken) {
        self.all.push(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn printed(format: &str, facts: &WriteOutValues<'_>) -> (String, String) {
        let (format, _) = WriteOut::parse(format.as_bytes());
        let printed = format.render(facts, ProgramPersona::Haul);
        let text = |bytes| String::from_utf8(bytes).expect("test text is UTF-8");
        (text(printed.stdout), text(printed.stderr))
    }

    fn facts() -> WriteOutValues<'static> {
        WriteOutValues {
            response_code: 404,
            url: "http://h/a",
            url_effective: "http://h/b",
            size_download: 1000,
            size_delivered: 1001,
            time_total: Duration::from_micros(2_000_001),
            time_connect: Duration::from_micros(1_500),
            method: "GET",
            scheme: "http",
            http_version: "1.1",
            content_type: Some("text/html"),
            remote_ip: Some([127, 0, 0, 1].into()),
            remote_port: Some(8080),
            num_connects: 1,
            num_redirects: 2,
            exit_code: 22,
            error: Some("The requested URL returned error: 404"),
            url_number: 7,
            ..Default::default()
        }
    }

    #[test]
    fn write_out_variables_print_like_curl() {
        let format = "%{http_code} %{response_code} %{url_effective} %{size_download} %{size_delivered} \
                      %{time_total} %{time_connect} %{time_appconnect} %{num_connects} \
                      %{num_redirects} %{content_type} %{exitcode} %{method} %{scheme} \
                      %{http_version} %{remote_ip}:%{remote_port} %{urlnum} %{speed_download}";
        assert_eq!(
            printed(format, &facts()).0,
            "404 404 http://h/b 1000 1001 2.000001 0.001500 0.000000 1 2 text/html 22 GET http 1.1 \
             127.0.0.1:8080 7 499",
        );
    }

    #[test]
    fn missing_values_print_like_curl() {
        let format = "[%{http_code}|%{content_type}|%{errormsg}|%{filename_effective}|\
                      %{http_version}|%{local_ip}|%{local_port}|%{remote_port}|%{speed_download}]";
        assert_eq!(printed(format, &WriteOutValues::default()).0, "[000||||0||-1|-1|0]");
        let all = printed("%{json}", &WriteOutValues::default()).0;
        assert!(all.contains("\"local_port\":-1,") && all.contains("\"remote_port\":-1,"), "{all}");
    }

    #[test]
    fn write_out_decodes_escapes_and_keeps_stray_percents() {
        let facts = facts();
        assert_eq!(printed(r"a\tb\r\n\q\\", &facts).0, "a\tb\r\n\\q\\\\");
        assert_eq!(printed("100%% %z % %", &facts).0, "100% %z % %");
        assert_eq!(printed("%{http_code", &facts).0, "%{http_code");
        assert_eq!(printed("\\", &facts).0, "\\");
        assert_eq!(printed("%%{http_code}", &facts).0, "%{http_code}");
        assert_eq!(printed("", &facts).0, "");
    }

    #[test]
    fn write_out_stderr_and_onerror_select_printed_parts() {
        let format = "a%{stderr}b%{stdout}c%{onerror}d %{errormsg}";
        let failed = facts();
        let expected = "acd The requested URL returned error: 404".to_owned();
        assert_eq!(printed(format, &failed), (expected, "b".to_owned()));
        let good = WriteOutValues { exit_code: 0, ..failed };
        assert_eq!(printed(format, &good), ("ac".to_owned(), "b".to_owned()));
    }

    #[test]
    fn write_out_arguments_end_at_the_brace() {
        let tokens = |format: &str| WriteOut::parse(format.as_bytes()).0.tokens().to_vec();
        let all = |name: &str, separator: &str| vec![WriteOutToken::Fields(name.to_owned(), separator.to_owned())];
        assert_eq!(tokens("%header{x}"), [WriteOutToken::Field("x".to_owned())]);
        assert_eq!(tokens("%header{x:all:, }"), all("x", ", "));
        assert_eq!(tokens(r"%header{x:all:\}\n\q}"), all("x", "}\n\\q"));
        assert_eq!(tokens("%header{x:all:}"), all("x", ""));
        assert_eq!(tokens("%header{x:any:,}"), [WriteOutToken::Field("x:any:,".to_owned())]);
        assert_eq!(tokens("%time{%H:%M}"), [WriteOutToken::Time("%H:%M".to_owned())]);
        assert_eq!(tokens("%time{%H"), [WriteOutToken::Text(b"%time{%H".to_vec())]);
        assert_eq!(tokens(r"%header{x\}"), [WriteOutToken::Text(br"%header{x\}".to_vec())]);
    }

    #[test]
    fn url_variables_split_ipv6_zone_from_host() {
        let urls = ["http://[fe80::1%25eth0]:8080/", "http://[0:0::1]/", "http://127.1/"];
        let said = urls.map(|url| {
            let facts = WriteOutValues { url, url_effective: url, ..facts() };
            printed("%{url.host} %{url.port} %{url.zoneid},%{urle.host} %{urle.zoneid}", &facts).0
        });
        assert_eq!(said, ["[fe80::1] 8080 eth0,[fe80::1] eth0", "[::1] 80 ,[::1] ", "127.0.0.1 80 ,127.0.0.1 "]);
    }

    #[test]
    fn stray_percent_keeps_the_next_character() {
        let (format, warnings) = WriteOut::parse(b"100%\\n%x%%\\n%");
        assert_eq!(format.tokens(), [WriteOutToken::Text(b"100%\\n%x%\n%".to_vec())]);
        assert!(warnings.is_empty());
    }

    #[test]
    fn unknown_variables_warn_and_print_nothing() {
        let (format, warnings) = WriteOut::parse(b"a%{nope\x1b}b%{}c");
        assert_eq!(warnings, ["unknown --write-out variable: 'nope?'", "unknown --write-out variable: ''",],);
        assert_eq!(format.tokens(), [WriteOutToken::Text(b"abc".to_vec())]);
    }
}

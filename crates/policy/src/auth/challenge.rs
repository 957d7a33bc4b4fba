//! WWW-Authenticate and Proxy-Authenticate (RFC 9110 §11.6.1, §11.3).
//!
//! The grammar is ambiguous: commas separate challenges as well as their parameters, and several
//! fields form one list. A word followed by `=` is a parameter's name; any other word is a new
//! scheme.

use core::fmt;

use crate::field_validation::is_tchar;

/// The maximum number of challenges read from a response. Further challenges are ignored.
pub const MAX_CHALLENGES: usize = 32;
/// The maximum number of parameters read from a challenge. Further parameters are ignored.
pub const MAX_PARAMETERS: usize = 64;

/// An authentication scheme. Names are compared without regard to case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AuthScheme {
    /// `Basic` (RFC 7617): user and password are sent in base64.
    Basic,
    /// `Digest` (RFC 7616): a hash proves that the client knows the password.
    Digest,
    /// `Bearer` (RFC 6750): a token is sent.
    Bearer,
    /// `NTLM`, Microsoft's scheme, which authenticates a connection instead of a request. Not
    /// supported.
    Ntlm,
    /// `Negotiate` (RFC 4559: SPNEGO, Kerberos), which authenticates a connection.
    Negotiate,
    /// Any other scheme; the name is in lower case.
    Other(String),
}

impl AuthScheme {
    /// Returns the scheme of the credentials in an Authorization value: its first word (RFC 9110
    /// §11.4).
    pub fn from_credentials(credentials: &[u8]) -> AuthScheme {
        AuthScheme::parse(credentials.split(|&byte| byte == b' ').next().unwrap_or_default())
    }

    /// Returns `true` if the scheme authenticates a whole connection instead of single requests.
    pub fn authenticates_connection(&self) -> bool {
        matches!(self, AuthScheme::Ntlm | AuthScheme::Negotiate)
    }

    fn parse(name: &[u8]) -> AuthScheme {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        match name.as_str() {
            "basic" => AuthScheme::Basic,
            "digest" => AuthScheme::Digest,
            "bearer" => AuthScheme::Bearer,
            "ntlm" => AuthScheme::Ntlm,
            "negotiate" => AuthScheme::Negotiate,
            _ => AuthScheme::Other(name),
        }
    }
}

impl fmt::Display for AuthScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AuthScheme::Basic => "Basic",
            AuthScheme::Digest => "Digest",
            AuthScheme::Bearer => "Bearer",
            AuthScheme::Ntlm => "NTLM",
            AuthScheme::Negotiate => "Negotiate",
            AuthScheme::Other(name) => name,
        })
    }
}

/// A challenge of a server or proxy: a scheme and its parameters (RFC 9110 §11.3). It asks the
/// client for credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The authentication scheme of the challenge.
    pub scheme: AuthScheme,
    /// The base64 token that NTLM and Negotiate send instead of parameters (a token68); `None` for
    /// other challenges.
    pub token68: Option<Vec<u8>>,
    /// The parameters of the challenge: names in lower case, values unquoted.
    pub parameters: Vec<(String, Vec<u8>)>,
}

impl Challenge {
    /// Returns the value of the parameter with this name (in lower case); `None` if there is none.
    /// If a server sends the parameter twice, the last value is returned, as in curl.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.parameters.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_slice())
    }
}

/// Parses all challenges of a response's fields, in order. Malformed text is skipped up to the next
/// comma.
pub fn parse_challenges<'f>(fields: impl IntoIterator<Item = &'f [u8]>) -> Vec<Challenge> {
    let mut found = Vec::new();
    for field in fields {
        // A parameter belongs to a challenge of its own field.
        let first = found.len();
        let mut cursor = ChallengeParser { rest: field };
        while cursor.skip_separators() {
            if found.len() > MAX_CHALLENGES {
                break;
            }
            // The rest of an item, and an item that is malformed, is skipped.
            cursor.parse_item_with_parameters(&mut found, first);
            cursor.skip_item();
        }
    }
    found.truncate(MAX_CHALLENGES);
    found
}

/// Parses a list of `name=value` pairs, as in Authentication-Info, where no scheme stands before
/// them.
pub(super) fn parse_parameters(field: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![Challenge { scheme: AuthScheme::Digest, token68: None, parameters: Vec::new() }];
    let mut cursor = ChallengeParser { rest: field };
    while cursor.skip_separators() && found.len() == 1 {
        cursor.parse_item_with_parameters(&mut found, 0);
        cursor.skip_item();
    }
    found.swap_remove(0).parameters
}

/// A parser of a field with challenges. It holds the text that is not parsed yet.
struct ChallengeParser<'f> {
    rest: &'f [u8],
}

impl<'f> ChallengeParser<'f> {
    fn skip_blanks(&mut self) -> bool {
        let before = self.rest.len();
        self.rest = &self.rest[self.rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()..];
        self.rest.len() < before
    }

    /// Skips commas and blanks up to the next item of the list. Returns `false` if there is no
    /// further item.
    fn skip_separators(&mut self) -> bool {
        self.rest = &self.rest[self.rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b',')).count()..];
        !self.rest.is_empty()
    }

    /// Skips to the next comma that is not inside a quoted string.
    fn skip_item(&mut self) {
        let mut quoted = false;
        let mut escaped = false;
        let end = self.rest.iter().position(|b| {
            let was_escaped = core::mem::take(&mut escaped);
            match b {
                b'\\' if quoted && !was_escaped => escaped = true,
                b'"' if !was_escaped => quoted = !quoted,
                b',' => return !quoted,
                _ => {}
            }
            false
        });
        self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
    }

    fn is_at_end_of_item(&self) -> bool {
        self.rest.first().is_none_or(|b| *b == b',')
    }

    /// Parses a list item and any parameters that follow it without a comma, and adds them to
    /// `found`, in which the challenges of this field begin at the index `first`. Some servers
    /// forget commas, and curl tolerates that too.
    fn parse_item_with_parameters(&mut self, found: &mut Vec<Challenge>, first: usize) {
        while self.parse_item(found, first).is_some() && self.is_at_parameter() {}
    }

    /// Returns `true` if the text continues with a parameter of the challenge: a name and `=`.
    fn is_at_parameter(&mut self) -> bool {
        self.skip_blanks();
        let count = self.rest.iter().take_while(|b| is_tchar(**b)).count();
        count > 0 && self.rest.get(count) == Some(&b'=')
    }

    /// Parses one list item: a parameter of the last challenge, or the start of a new challenge
    /// with its first parameter or token68. Adds the result to `found`, in which the challenges of
    /// this field begin at the index `first`. Returns `None` if the item is malformed.
    fn parse_item(&mut self, found: &mut Vec<Challenge>, first: usize) -> Option<()> {
        let word = self.parse_token()?;
        let blanks = self.skip_blanks();
        if self.rest.first() == Some(&b'=') {
            let value = self.parse_parameter_value()?;
            let challenge = found.get_mut(first..)?.last_mut()?;
            if challenge.parameters.len() < MAX_PARAMETERS {
                challenge.parameters.push((String::from_utf8_lossy(word).to_ascii_lowercase(), value));
            }
            return Some(());
        }
        if !blanks && !self.is_at_end_of_item() {
            return None;
        }
        found.push(Challenge { scheme: AuthScheme::parse(word), token68: None, parameters: Vec::new() });
        if self.is_at_end_of_item() {
            return Some(());
        }
        let challenge = found.last_mut()?;
        if let Some(token) = self.parse_token68() {
            challenge.token68 = Some(token.to_vec());
            return Some(());
        }
        let name = String::from_utf8_lossy(self.parse_token()?).to_ascii_lowercase();
        self.skip_blanks();
        let value = self.parse_parameter_value()?;
        challenge.parameters.push((name, value));
        Some(())
    }

    fn parse_token(&mut self) -> Option<&'f [u8]> {
        let count = self.rest.iter().take_while(|b| is_tchar(**b)).count();
        let (token, rest) = self.rest.split_at(count);
        self.rest = rest;
        (count > 0).then_some(token)
    }

    /// Parses a token68 (RFC 9110 section 11.2) if it is the whole list item, up to a comma or the
    /// end of the field. Otherwise returns `None` and consumes nothing: in the parameter `realm=x`,
    /// for example, `realm=` looks like a token68, but `x` follows.
    fn parse_token68(&mut self) -> Option<&'f [u8]> {
        let is_char = |b: &u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(b);
        let chars = self.rest.iter().take_while(|b| is_char(b)).count();
        let padding = self.rest[chars..].iter().take_while(|b| **b == b'=').count();
        let (token, mut rest) = self.rest.split_at(chars + padding);
        rest = rest.trim_ascii_start();
        if chars == 0 || rest.first().is_some_and(|b| *b != b',') {
            return None;
        }
        self.rest = rest;
        Some(token)
    }

    /// Parses a parameter's value after `=`: a token, or a quoted string. Returns `None` if there
    /// is no `=`, or if the closing quote is missing. Other text up to a comma or blank counts as a
    /// token, since some servers forget the quotes.
    fn parse_parameter_value(&mut self) -> Option<Vec<u8>> {
        self.rest = self.rest.strip_prefix(b"=")?;
        self.skip_blanks();
        let Some(mut rest) = self.rest.strip_prefix(b"\"") else {
            let end = self.rest.iter().position(|b| matches!(b, b',' | b' ' | b'\t')).unwrap_or(self.rest.len());
            let (value, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Some(value.to_vec());
        };
        let mut value = Vec::new();
        loop {
            match rest {
                [b'"', after @ ..] => {
                    self.rest = after;
                    return Some(value);
                }
                [b'\\', escaped, after @ ..] => {
                    value.push(*escaped);
                    rest = after;
                }
                [b, after @ ..] => {
                    value.push(*b);
                    rest = after;
                }
                [] => {
                    // The quote is not closed: nothing after it can be trusted.
                    self.rest = rest;
                    return None;
                }
            }
        }
    }
}

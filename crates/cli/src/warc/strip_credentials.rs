//! Removes credentials from request heads.
//!
//! ```
//! use haul_cli::warc::strip_credentials::without_credentials;
//!
//! let head = b"GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\nAccept: */*\r\n\r\n";
//! assert_eq!(without_credentials(head), b"GET / HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n");
//! ```

use haul_policy::secret_fields::{drop_userinfo, is_hidden_field};

/// Returns a request head without the fields that contain credentials (`Authorization`,
/// `Proxy-Authorization`, `Cookie`, and the usual names of fields with API keys and tokens).
/// Removes user and password from the URL of `Referer`.
pub fn without_credentials(head: &[u8]) -> Vec<u8> {
    let lines = head.split_inclusive(|&byte| byte == b'\n').enumerate();
    let kept = lines.filter(|(at, line)| *at == 0 || !is_credential(line));
    kept.flat_map(|(_, line)| referer_without_userinfo(line).unwrap_or_else(|| line.to_owned())).collect()
}

/// Returns the field `Referer` without user and password; `None` for any other field.
fn referer_without_userinfo(line: &[u8]) -> Option<Vec<u8>> {
    let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
    let text = value.trim_start();
    let blanks = &value[..value.len() - text.len()];
    name.eq_ignore_ascii_case("referer").then(|| format!("{name}:{blanks}{}", drop_userinfo(text)).into_bytes())
}

fn is_credential(line: &[u8]) -> bool {
    let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
    std::str::from_utf8(name).is_ok_and(is_hidden_field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_fields_are_removed_in_any_letter_case() {
        let head = "GET /?token:=1 HTTP/1.1\r\nhost: h\r\nAUTHORIZATION: Basic eDp5\r\nproxy-authorization: x\r\n\
                    X-Api-Key: 1\r\nX-Author: me\r\ncookie:\r\n\r\n";
        let kept = "GET /?token:=1 HTTP/1.1\r\nhost: h\r\nX-Author: me\r\n\r\n";
        assert_eq!(without_credentials(head.as_bytes()), kept.as_bytes());
    }

    #[test]
    fn referer_keeps_its_url_without_credentials() {
        let head = "GET http://a:b@h/ HTTP/1.1\r\nreferer:  http://me:word@h/a@b\r\nX: http://a:b@h/\r\n\r\n";
        let kept = "GET http://a:b@h/ HTTP/1.1\r\nreferer:  http://h/a@b\r\nX: http://a:b@h/\r\n\r\n";
        assert_eq!(without_credentials(head.as_bytes()), kept.as_bytes());
    }
}

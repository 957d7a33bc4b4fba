//! Response fields with values that may confuse a client.
//!
//! None of these fields changes the framing of a 200 response. The fields that do are in the two
//! modules `h1_reply_generator` and `h2_reply_generator`.

use super::reply_draft::random_choice;
use crate::rng::Rng;

/// A response field: a lower-case name, as HTTP/2 requires, and a value in valid syntax.
pub(super) type HostileField = (&'static str, String);

/// The names of response fields, each with values that may confuse a client.
const FIELDS: &[(&str, &[&str])] = &[
    ("server", &["", "x", "x/1 (y; \"z\\\" ) \u{e9}", "<script>alert(1)</script>", "%s%n%x%00"]),
    ("date", &["", "now", "Thu, 01 Jan 1970 00:00:00 GMT", "Sun, 99 Foo 99999 99:99:99 GMT", "-1"]),
    ("last-modified", &["Thu, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 0000 00:00:00 GMT", "yesterday", "0"]),
    ("etag", &["", "\"", "W/", "\"a\"b\"", "W/\"\"", "\"\u{e9}\"", "abc", "\"../../x\""]),
    (
        "set-cookie",
        &[
            "a=b",
            "=b",
            "a",
            "",
            ";;;",
            "a=b; Domain=.",
            "a=b; Domain=..com",
            "a=b; Domain=com.",
            "a=b; Domain=\u{e9}.test",
            "__Host-a=b; Domain=x; Path=/y",
            "a=b; Max-Age=99999999999999999999",
            "a=b; Max-Age=-",
            "a=b; Expires=x",
            "a=b; Expires=Fri, 31 Dec 99999 23:59:59 GMT",
            "a=\"b;c\"; Path=\"",
            "a=b\tc",
            "a=b; Path=/\u{7f}\u{80}",
            "a=b; SameSite=",
            "#HttpOnly_x=1",
            "a=b; Secure; Secure; HttpOnly=1; Domain; Path; =; Max-Age",
        ],
    ),
    (
        "strict-transport-security",
        &[
            "max-age=1",
            "max-age=\"",
            "max-age=99999999999999999999999",
            "max-age=-1",
            "includeSubDomains",
            "max-age=1;max-age=2",
            ";;;",
            "max-age = 1 ; x=\"\\\"",
            "",
        ],
    ),
    (
        "alt-svc",
        &[
            "clear",
            "h2=\":0\"",
            "h2=\":99999\"",
            "h2=\"[::1]:443\"; ma=99999999999999999999",
            "h3=\"\\\"\"",
            "h2=\"",
            "=\":1\"",
            "h2=\":1\", h2=\":1\", h2=\":1\"",
            "h2=\"a\u{e9}:1\"",
            "%zz=\":1\"",
            "h2=\":443\"; ma=; persist=1; x",
        ],
    ),
    (
        "www-authenticate",
        &[
            "Digest",
            "Digest realm=\"",
            "Digest realm=\"a\", nonce=\"\\",
            "Basic realm=\"a\"b",
            "Digest algorithm=MD9, nonce=\"\"",
            "Digest nonce=\"a\", nonce=\"b\", qop=\"auth,auth-int,x\"",
            "NTLM TlRMTVNTUA==",
            ",,,,",
            "Bearer a=b=c",
            "Negotiate",
        ],
    ),
    ("proxy-authenticate", &["Basic", "Digest nonce=", "x y z"]),
    ("authentication-info", &["nextnonce=\"", "nextnonce=\"a\", rspauth=\"0\"", "qop=x"]),
    (
        "content-disposition",
        &[
            "attachment; filename=\"../../../etc/passwd\"",
            "attachment; filename=",
            "attachment; filename=\".bashrc\"",
            "attachment; filename*=UTF-8''%2e%2e%2f%00",
            "attachment; filename*=x'y'%zz",
            "attachment; filename=\"a\\\"b\"",
            "attachment; filename=\"con\u{1b}[2J\"",
            "inline; filename=/dev/null",
            "; ; =",
            "attachment; filename=\"a",
            "attachment; filename=\u{e9}",
        ],
    ),
    (
        "content-type",
        &["", "x", "text/html; charset=\"", "multipart/byteranges; boundary=x", "text/plain; charset=utf-7"],
    ),
    ("link", &["<>", "</a>; rel=\"next", "<http://[::1>"]),
    ("refresh", &["0; url=http://[", "-1"]),
    ("accept-ranges", &["none", "bytes, bytes", "x", ""]),
    ("age", &["-1", "99999999999999999999", "x"]),
    ("vary", &["*", ","]),
    ("cache-control", &["max-age=99999999999999999999", "=,="]),
    ("x-long", &["%LONG%"]),
];

/// Returns a few random fields of [`FIELDS`]; in rare cases many.
pub(super) fn random_fields(rng: &mut Rng) -> Vec<HostileField> {
    let count = match rng.below(20) {
        0 => 300,
        1..=8 => 1 + rng.below(8),
        _ => rng.below(3),
    };
    (0..count)
        .map(|_| {
            let (name, values) = random_choice(rng, FIELDS);
            let value = random_choice(rng, values);
            // Obsolete text is kept; a control character would be a breach, which is a case of its
            // own.
            let value = value.replace(['\u{1b}', '\u{7f}', '\0'], "_");
            // All fields together stay below the size limit of a head.
            let most = if count > 10 { 100 } else { 16_000 };
            (name, if value == "%LONG%" { "y".repeat(rng.below(most) as usize) } else { value })
        })
        .collect()
}

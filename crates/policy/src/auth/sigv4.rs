//! Signs requests with a secret key: AWS's Signature Version 4, and schemes of other providers
//! that differ only in names (`--aws-sigv4`; the AWS General Reference, "Signature Version 4
//! signing process").
//!
//! The signature covers the method, the path, the query, the listed fields, and the content's
//! SHA-256. The secret itself is not sent, and a signature is valid for some minutes and for one
//! request only.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::auth::{Credentials, SigV4Parameters, UnsignedRequest};
//!
//! let target = Target::parse("https://bucket.s3.amazonaws.com/a/key")?;
//! let request = UnsignedRequest {
//!     method: "GET",
//!     target: &target,
//!     host: b"bucket.s3.amazonaws.com",
//!     fields: &[],
//!     content: Some(b""),
//!     unix: 1_440_938_160,
//! };
//! let signature = SigV4Parameters::parse("aws:amz:us-east-1:s3")?.sign(&Credentials::new("KEY", "SECRET")?, &request)?;
//! assert!(signature.authorization.starts_with("AWS4-HMAC-SHA256 Credential=KEY/20150830/us-east-1/s3/aws4_request, "));
//! assert_eq!(signature.fields[0], ("X-Amz-Date".to_owned(), "20150830T123600Z".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Rejected: the crate of AWS's SDK. It signs for AWS only, while curl's option begins with a
//! provider, and it needs the SDK's runtime.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use super::digest_algorithm::hex;
use super::{AuthError, Credentials};
use crate::calendar::CalendarTime;
use crate::target::{Host, Target};
use crate::urlencode::{percent_decode, percent_encode};

/// The value that replaces an empty `--aws-sigv4` argument.
const DEFAULT_PROVIDERS: &str = "aws:amz";
/// The largest length in bytes of each colon-separated part of the `--aws-sigv4` argument, as in
/// curl.
const MAX_PARAMETER_LENGTH: usize = 64;
/// The text that is signed in place of the content's SHA-256 if the content cannot be read in
/// advance.
const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";
/// Services that sign the path exactly as it is sent, and need a field with the content's SHA-256.
/// All other services percent-encode the path once more before they sign it.
const S3_SERVICES: [&str; 5] = ["s3", "s3-express", "s3express", "s3-object-lambda", "s3-outposts"];

/// The parsed argument of `--aws-sigv4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigV4Parameters {
    /// The provider in the algorithm's name, in lower case, such as `aws` for `AWS4-HMAC-SHA256`.
    algorithm: String,
    /// The provider in field names, in lower case, such as `amz` for `X-Amz-Date`.
    vendor: String,
    region: Option<String>,
    service: Option<String>,
}

/// The parts of a request that a signature may cover.
#[derive(Clone, Copy, Debug)]
pub struct UnsignedRequest<'a> {
    /// The method of the request, such as `GET`.
    pub method: &'a str,
    /// The URL that the request is sent to.
    pub target: &'a Target,
    /// The value of the Host field.
    pub host: &'a [u8],
    /// The header fields to sign in addition to Host. If they include the provider's date field,
    /// such as `X-Amz-Date`, the value of that field is the time of the signature instead of
    /// `unix`.
    pub fields: &'a [(&'a str, &'a [u8])],
    /// The content of the request; `None` if it cannot be read in advance.
    pub content: Option<&'a [u8]>,
    /// The time of the signature, in seconds since 1970. Unused if `fields` includes the provider's
    /// date field.
    pub unix: u64,
}

/// The fields to add to a request so that it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigV4Fields {
    /// The value of the Authorization field to add.
    pub authorization: String,
    /// The fields to add besides Authorization: the date and, for AWS S3, the content's SHA-256.
    /// Fields that the request already has are left out.
    pub fields: Vec<(String, String)>,
}

impl SigV4Parameters {
    /// Parses the argument of `--aws-sigv4`: `PROVIDER1[:PROVIDER2[:REGION[:SERVICE]]]`. An empty
    /// argument means `aws:amz`, and PROVIDER2 defaults to PROVIDER1. Service and region default to
    /// the first labels of the host's name.
    ///
    /// # Errors
    /// [`AuthError::SigV4`]: no provider, or a part that is too long or not a single word.
    pub fn parse(text: &str) -> Result<SigV4Parameters, AuthError> {
        let mut parts = if text.is_empty() { DEFAULT_PROVIDERS } else { text }.split(':');
        let mut part = || match parts.next().unwrap_or_default() {
            "" => Ok(None),
            part if part.len() > MAX_PARAMETER_LENGTH => Err(AuthError::SigV4("a part of it is too long")),
            part if percent_encode(part.as_bytes()) != part => {
                Err(AuthError::SigV4("a part of it is more than a word"))
            }
            part => Ok(Some(part.to_owned())),
        };
        let algorithm = part()?.ok_or(AuthError::SigV4("it names no provider"))?.to_ascii_lowercase();
        let vendor = part()?.map_or_else(|| algorithm.clone(), |vendor| vendor.to_ascii_lowercase());
        Ok(SigV4Parameters { algorithm, vendor, region: part()?, service: part()? })
    }

    /// Returns the target to sign and send instead of `target`; `None` means `target` itself. For
    /// S3 services, the returned target has the canonical encoding of the path: `/a=b` becomes
    /// `/a%3Db`. Some storage services sign the path as it was sent. Other services, such as AWS
    /// S3, first decode the path and encode it again. A path in canonical encoding has the same
    /// signature at both.
    pub fn signed_target(&self, target: &Target) -> Option<Target> {
        let (_, service) = self.region_and_service(target.host()).ok()?;
        if !is_s3_service(&service) {
            return None;
        }
        // To them an encoded slash is like any other slash; but it stays encoded where an
        // intermediary could take its neighbour for a dot segment.
        let path = percent_path(&percent_decode(target.path().as_bytes()));
        let has_dots = path.split('/').any(|segment| matches!(segment, "." | ".."));
        (path != target.path() && !has_dots).then(|| target.with_path(&path))
    }

    /// Signs a request. Send it exactly as it was passed here, with the returned fields.
    ///
    /// # Errors
    /// [`AuthError::SigV4`]: the host's name does not give the service or the region, the request's
    /// own date is malformed, or the content cannot be read beforehand and the service accepts no
    /// unsigned content.
    pub fn sign(&self, credentials: &Credentials, request: &UnsignedRequest<'_>) -> Result<SigV4Fields, AuthError> {
        let (region, service) = self.region_and_service(request.target.host())?;
        let is_store = is_s3_service(&service);
        let (date_name, hash_name) = (format!("x-{}-date", self.vendor), format!("x-{}-content-sha256", self.vendor));
        let own = |name: &str| request.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));

        let mut fields = Vec::new();
        let time = match own(&date_name) {
            Some((_, value)) => parse_date_field(value)?,
            None => CalendarTime::from_unix(request.unix).to_iso_basic(),
        };
        if own(&date_name).is_none() {
            fields.push((format!("X-{}-Date", capitalised(&self.vendor)), time.clone()));
        }
        let hash = match (own(&hash_name), request.content) {
            (Some((_, value)), _) => String::from_utf8_lossy(value.trim_ascii()).into_owned(),
            (None, Some(content)) => hex(&Sha256::digest(content)),
            (None, None) if self.is_aws() && is_store => UNSIGNED_PAYLOAD.to_owned(),
            (None, None) => {
                return Err(AuthError::SigV4("the content is not in memory, and the service wants it signed"));
            }
        };
        if own(&hash_name).is_none() && self.is_aws() && is_store {
            fields.push((hash_name, hash.clone()));
        }

        let (lines, names) = canonical_fields(request, &fields);
        let path = request.target.path();
        let path = if is_store { path.to_owned() } else { percent_path(normalize_path(path).as_bytes()) };
        let query = canonical_query(request.target.query().unwrap_or_default());
        let head = format!("{}\n{path}\n{query}\n", request.method);
        let canonical = [head.as_bytes(), &lines, format!("\n{names}\n{hash}").as_bytes()].concat();

        let upper = self.algorithm.to_ascii_uppercase();
        let (day, last) = (&time[..8], format!("{}4_request", self.algorithm));
        let scope = format!("{day}/{region}/{service}/{last}");
        let to_sign = format!("{upper}4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
        let secret = [upper.as_bytes(), b"4", credentials.password()].concat();
        let steps = [day, &*region, &*service, &*last, &*to_sign];
        let signature = steps.iter().fold(secret, |key, step| hmac(&key, step.as_bytes()));

        let user = percent_encode(credentials.user());
        let authorization = format!(
            "{upper}4-HMAC-SHA256 Credential={user}/{scope}, SignedHeaders={names}, Signature={}",
            hex(&signature)
        );
        Ok(SigV4Fields { authorization, fields })
    }

    fn is_aws(&self) -> bool {
        self.algorithm == "aws"
    }

    /// Returns the region and the service, from the argument of `--aws-sigv4` or from the host's
    /// name: `service.region.…`.
    fn region_and_service(&self, host: &Host) -> Result<(String, String), AuthError> {
        let labels: Vec<&str> = match host {
            Host::Name(name) => name.split('.').collect(),
            _ => Vec::new(),
        };
        // The last label is a top-level domain, not a service or region.
        let label = |at: usize| (at + 1 < labels.len() && !labels[at].is_empty()).then(|| labels[at].to_owned());
        let service = self.service.clone().or_else(|| label(0));
        let region = self.region.clone().or_else(|| label(1));
        Ok((
            region.ok_or(AuthError::SigV4("neither the option nor the host's name says the region"))?,
            service.ok_or(AuthError::SigV4("neither the option nor the host's name says the service"))?,
        ))
    }
}

/// Returns two texts in canonical form: the header lines to sign, and the list of their names. The
/// lines are the request's fields and the fields in `made`, which the signer adds.
fn canonical_fields(request: &UnsignedRequest<'_>, made: &[(String, String)]) -> (Vec<u8>, String) {
    let made = made.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let all = [("host", request.host)].into_iter().chain(request.fields.iter().copied()).chain(made);
    let mut all: Vec<(String, &[u8])> = all.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    all.sort_by(|(name, _), (other, _)| name.cmp(other));
    let (mut lines, mut names) = (Vec::new(), Vec::new());
    for same in all.chunk_by(|(name, _), (next, _)| name == next) {
        let name = &same[0].0;
        let values: Vec<Vec<u8>> = same.iter().map(|(_, value)| with_single_blanks(value)).collect();
        lines.extend_from_slice(&[name.as_bytes(), b":", &values.join(&b","[..]), b"\n"].concat());
        names.push(name.as_str());
    }
    (lines, names.join(";"))
}

/// Removes blanks at both ends of a field value and reduces runs of blanks to one.
fn with_single_blanks(value: &[u8]) -> Vec<u8> {
    let words: Vec<&[u8]> = value.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty()).collect();
    words.join(&b' ')
}

/// Returns the query in canonical form: `name=value` pairs, sorted and percent-encoded.
fn canonical_query(query: &str) -> String {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (reencode_percent(name), reencode_percent(value))
    };
    let mut pairs: Vec<_> = query.split('&').filter(|text| !text.is_empty()).map(pair).collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// Decodes percent-encoded text and encodes it again. A plus sign means a blank, as in forms.
fn reencode_percent(text: &str) -> String {
    percent_encode(&percent_decode(text.replace('+', " ").as_bytes()))
}

/// Percent-encodes a URL path, except its slashes.
fn percent_path(path: &[u8]) -> String {
    path.split(|byte| *byte == b'/').map(percent_encode).collect::<Vec<_>>().join("/")
}

/// Removes dot segments and repeated slashes from a path. Every service except [`S3_SERVICES`] does
/// this before it checks a signature.
fn normalize_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let end = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
}

fn is_s3_service(service: &str) -> bool {
    S3_SERVICES.contains(&service)
}

/// Checks the value of a date field that the caller supplied. Returns the value if it has the form
/// `20130524T000000Z`.
fn parse_date_field(value: &[u8]) -> Result<String, AuthError> {
    let value = value.trim_ascii();
    let is_right = |(at, byte): (usize, &u8)| match at {
        8 => *byte == b'T',
        15 => *byte == b'Z',
        _ => byte.is_ascii_digit(),
    };
    if value.len() == 16 && value.iter().enumerate().all(is_right) {
        Ok(String::from_utf8_lossy(value).into_owned())
    } else {
        Err(AuthError::SigV4("the request's own date is not of the form 20150830T123600Z"))
    }
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_ascii_uppercase() + rest
}

pub(super) fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of HMAC may have any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The date of the examples in S3's documentation (2013-05-24), in seconds since 1970.
    const DAY_OF_EXAMPLES: u64 = 1_369_353_600;

    fn signed(
        option: &str,
        who: (&str, &str),
        url: &str,
        unsigned: &UnsignedRequest<'_>,
    ) -> Result<SigV4Fields, AuthError> {
        let target = Target::parse(url).unwrap();
        let (user, password) = who;
        let host = target.authority();
        let request = UnsignedRequest { target: &target, host: host.as_bytes(), ..*unsigned };
        SigV4Parameters::parse(option)?.sign(&Credentials::new(user, password).unwrap(), &request)
    }

    /// Returns the signature: the last word of the Authorization value.
    fn signature(signed: &SigV4Fields) -> &str {
        signed.authorization.rsplit('=').next().unwrap()
    }

    fn get(target: &Target) -> UnsignedRequest<'_> {
        UnsignedRequest { method: "GET", target, host: b"", fields: &[], content: Some(b""), unix: 0 }
    }

    fn somewhere() -> Target {
        Target::parse("http://h/").unwrap()
    }

    /// Compares with published signatures: curl's test cases, AWS's test suite, S3's documentation.
    #[test]
    fn sigv4_signatures_match_published_examples() {
        let target = somewhere();
        let curls = ("user", "secret");
        for (url, expected) in [
            (
                "http://fake.fake.fake:8000/439/?name=me&noval&aim=b%aad&&&weirdo=*.//-",
                "9dd8592929306832a6673d10063491391e486e5f50de4647ea7c2c797277e0a6",
            ),
            (
                "http://fake.fake.fake:8000/472/a=%E3%81%82",
                "b8783c8387a5249b084642126fe1f8e07e12a2847820fd5b6cd64b2047149da4",
            ),
        ] {
            assert_eq!(
                signature(&signed("aws:amz:us-east-2:es", curls, url, &get(&target)).unwrap()),
                expected,
                "{url}"
            );
        }

        let suites = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let vanilla = UnsignedRequest { unix: 1_440_938_160, ..get(&target) };
        let vanilla = signed("aws:amz:us-east-1:service", suites, "https://example.amazonaws.com/", &vanilla).unwrap();
        assert_eq!(signature(&vanilla), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");

        let slashes = UnsignedRequest { unix: 1_440_938_160, ..get(&target) };
        for (path, expected) in [
            ("//", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        ] {
            let url = format!("https://example.amazonaws.com{path}");
            let made = signed("aws:amz:us-east-1:service", suites, &url, &slashes).unwrap();
            assert_eq!(signature(&made), expected, "{path}");
        }

        let s3s = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let date: &[u8] = b"Fri, 24 May 2013 00:00:00 GMT";
        let class: &[u8] = b"REDUCED_REDUNDANCY";
        for (method, path, fields, content, expected) in [
            (
                "GET",
                "test.txt",
                &[("Range", &b"bytes=0-9"[..])][..],
                &b""[..],
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "test%24file.text",
                &[("Date", date), ("x-amz-storage-class", class)][..],
                b"Welcome to Amazon S3.",
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            ("GET", "?lifecycle", &[], b"", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            (
                "GET",
                "?prefix=J&max-keys=2",
                &[],
                b"",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let url = format!("https://examplebucket.s3.amazonaws.com/{path}");
            let request =
                UnsignedRequest { method, fields, content: Some(content), unix: DAY_OF_EXAMPLES, ..get(&target) };
            assert_eq!(signature(&signed("aws:amz:us-east-1:s3", s3s, &url, &request).unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn sigv4_path_is_normalized_except_for_s3() {
        for (path, expected) in [
            ("/", "/"),
            ("//", "/"),
            ("/./", "/"),
            ("/..", "/"),
            ("/a/./b/../c", "/a/c"),
            ("/a//b///c/", "/a/b/c/"),
            ("/a/b/..", "/a"),
            ("/a/b/../", "/a/"),
            ("/a%2Fb//.x/..y", "/a%2Fb/.x/..y"),
        ] {
            assert_eq!(normalize_path(path), expected, "{path}");
        }
        let target = somewhere();
        let made = |service: &str, url: &str| {
            let option = format!("aws:amz:us-east-1:{service}");
            signed(&option, ("u", "p"), url, &get(&target)).unwrap().authorization
        };
        let (plain, odd) = ("http://h.example/a/b", "http://h.example//a//b");
        assert_eq!(made("es", plain), made("es", odd));
        assert_ne!(made("s3", plain), made("s3", odd), "an object's name may hold two slashes");
    }

    /// Checks that a date and a content hash in the request's fields are signed unchanged instead
    /// of computed.
    #[test]
    fn sigv4_uses_date_and_hash_from_the_request() {
        let target = somewhere();
        let url = "https://examplebucket.s3.amazonaws.com/test.txt";
        let made = |fields: &[(&str, &[u8])], content, unix| {
            signed("aws:amz:us-east-1:s3", ("u", "p"), url, &UnsignedRequest { fields, content, unix, ..get(&target) })
        };
        let ours = made(&[], Some(b"content"), DAY_OF_EXAMPLES).unwrap();
        let names: Vec<_> = ours.fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["X-Amz-Date", "x-amz-content-sha256"]);
        let own: Vec<_> = ours.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let theirs = made(&own, None, 0).unwrap();
        assert_eq!((theirs.authorization, theirs.fields), (ours.authorization, Vec::new()));

        let unsigned = made(&[], None, DAY_OF_EXAMPLES).unwrap();
        assert_eq!(unsigned.fields[1].1, "UNSIGNED-PAYLOAD");
        let other = UnsignedRequest { content: None, ..get(&target) };
        let refused = signed("osc:osc:eu:s3", ("u", "p"), url, &other).map(|made| made.authorization);
        assert!(matches!(refused, Err(AuthError::SigV4(why)) if why.contains("signed")), "only AWS accepts it");
        for date in ["yesterday", "20130524T000000", "2013-05-24T00:00Z", "2013052400000000", "20130524T00000xZ", ""] {
            assert!(made(&[("x-amz-date", date.as_bytes())], None, 0).is_err(), "{date}");
        }
    }

    #[test]
    fn sigv4_fields_are_sorted_merged_and_trimmed() {
        let target = somewhere();
        let fields: [(&str, &[u8]); 4] =
            [("X-B", b"  two   words\t"), ("x-a", b"1"), ("X-b", b"more"), ("Content-Type", b"text/plain")];
        let (lines, names) = canonical_fields(&UnsignedRequest { host: b"h:1", fields: &fields, ..get(&target) }, &[]);
        assert_eq!(names, "content-type;host;x-a;x-b");
        assert_eq!(lines, b"content-type:text/plain\nhost:h:1\nx-a:1\nx-b:two words,more\n");
    }

    /// Checks that a request to S3 is sent with the canonical encoding of its path: `/a%3Db` for
    /// `/a=b`. A service that decodes the path and encodes it again then gets the signed path.
    #[test]
    fn s3_path_is_sent_in_its_canonical_encoding() {
        let signed_target = |option, url: &str| {
            let target = Target::parse(url).unwrap();
            SigV4Parameters::parse(option).unwrap().signed_target(&target).map(|target| target.to_url())
        };
        let s3 = "aws:amz:us-east-1:s3";
        for (path, expected) in [
            ("dt=2026-01-02/a+b;c@d%2be%7ef/gr%c3%bc?x=a+b", "dt%3D2026-01-02/a%2Bb%3Bc%40d%2Be~f/gr%C3%BC?x=a+b"),
            ("(a)!'*,$&:", "%28a%29%21%27%2A%2C%24%26%3A"),
            ("a%2fb//100%25/%zz", "a/b//100%25/%25zz"),
        ] {
            let expected = format!("http://s3.example/{expected}");
            assert_eq!(signed_target(s3, &format!("http://s3.example/{path}")), Some(expected.clone()), "{path}");
            assert_eq!(signed_target(s3, &expected), None, "{path}");
        }
        assert_eq!(signed_target(s3, "http://s3.example/a%2F..%2Fb"), None, "no dot segment is made");
        assert_eq!(signed_target("aws:amz:us-east-1:es", "http://s3.example/a=b"), None, "others encode what was sent");
        assert!(signed_target("aws", "http://s3.eu.example/a=b").is_some(), "the host's name says the service");
    }

    #[test]
    fn sigv4_queries_are_sorted_and_encoded() {
        for (query, expected) in [
            ("", ""),
            ("a", "a="),
            ("a=&&b=x=y&", "a=&b=x%3Dy"),
            ("b=2&a=2&a=1&%61=0", "a=0&a=1&a=2&b=2"),
            ("q=a+b%20c%2Bd%2bd", "q=a%20b%20c%2Bd%2Bd"),
            ("%zz=%&e=%C3%a9*", "%25zz=%25&e=%C3%A9%2A"),
        ] {
            assert_eq!(canonical_query(query), expected, "{query}");
        }
    }

    #[test]
    fn sigv4_region_and_service_default_to_host_labels() {
        let target = somewhere();
        let begins = |option, url| {
            let made = signed(option, ("a/b", "p"), url, &get(&target))?;
            Ok(made.authorization.split(", ").next().unwrap().to_owned() + " " + &made.fields[0].0)
        };
        let at_aws = "https://api.eu-west-1.amazonaws.com/";
        for (option, expected) in [
            ("", "AWS4-HMAC-SHA256 Credential=a%2Fb/19700101/eu-west-1/api/aws4_request X-Amz-Date"),
            ("osc", "OSC4-HMAC-SHA256 Credential=a%2Fb/19700101/eu-west-1/api/osc4_request X-Osc-Date"),
            ("GOOG:gOoG:us", "GOOG4-HMAC-SHA256 Credential=a%2Fb/19700101/us/api/goog4_request X-Goog-Date"),
            ("aws:amz::es", "AWS4-HMAC-SHA256 Credential=a%2Fb/19700101/eu-west-1/es/aws4_request X-Amz-Date"),
        ] {
            assert_eq!(begins(option, at_aws).as_deref(), Ok(expected), "{option}");
        }
        let long = "r".repeat(65);
        for (option, url) in [
            (":amz", at_aws),
            ("aws:amz:a b", at_aws),
            ("aws:amz:a/b:c", at_aws),
            (&*format!("aws:amz:{long}"), at_aws),
            ("aws:amz", "http://localhost/"),
            ("aws:amz", "http://api.localdomain/"),
            ("aws:amz", "http://127.0.0.1/"),
            ("aws:amz:us", "http://127.0.0.1/"),
        ] {
            let refused: Result<String, AuthError> = begins(option, url);
            assert!(matches!(refused, Err(AuthError::SigV4(_))), "{option} {url} {refused:?}");
        }
        let request = UnsignedRequest { content: None, ..get(&target) };
        assert!(signed("aws:amz:us-east-1:es", ("u", "p"), at_aws, &request).is_err(), "the content is unknown");
    }
}

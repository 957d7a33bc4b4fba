//! Tests of credentials in requests, and of answers to challenges.

use haul_policy::auth::{AllowedAuthSchemes, Credentials, MessageSigner, SigV4Parameters, SignatureAlgorithm};
use haul_policy::redirect::SecretHandling;

use super::*;
use crate::body::upload::RequestBody;
use crate::request::{CurlCompat, RedirectRules};

const BASIC: &str = "401 X\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0";
const BEARER: &str = "401 X\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0";
/// Base64 of `user:password`.
const BASIC_VALUE: &str = "Basic dXNlcjpwYXNzd29yZA==";

fn digest(nonce: &str, more: &str) -> String {
    format!("401 X\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"{nonce}\"{more}\r\nContent-Length: 0")
}

fn user(allowed: AllowedAuthSchemes) -> RequestOptions {
    let mut options = RequestOptions::default();
    (options.auth.user, options.auth.allowed) = (Credentials::new("user", "password").ok(), allowed);
    options
}

fn following(options: RequestOptions, location_trusted: bool) -> RequestOptions {
    RequestOptions {
        redirects: RedirectRules { follow: true, location_trusted, ..RedirectRules::default() },
        ..options
    }
}

/// Returns the Authorization value of the next request.
fn authorization(transfer: &mut Transfer) -> Option<String> {
    request(transfer).lines().find_map(|line| line.strip_prefix("Authorization: ").map(str::to_owned))
}

/// Sends a request, reports the response, and returns the decision.
fn answer(transfer: &mut Transfer, text: &str) -> &'static str {
    request(transfer);
    respond(transfer, text);
    decision(transfer)
}

#[test]
fn only_allowed_scheme_is_used_at_once() {
    let mut basic = transfer(user(AllowedAuthSchemes::BASIC));
    assert_eq!(authorization(&mut basic).as_deref(), Some(BASIC_VALUE));
    assert_eq!(answer(&mut basic, BASIC), "deliver", "the password is wrong");
    let mut bearer = RequestOptions::default();
    bearer.auth = crate::state::auth::AuthOptions::bearer(&b"token"[..]);
    assert_eq!(authorization(&mut transfer(bearer)).as_deref(), Some("Bearer token"));
    assert_eq!(authorization(&mut transfer(user(AllowedAuthSchemes::DIGEST))), None);
    assert_eq!(authorization(&mut transfer(RequestOptions::default())), None);
}

#[test]
fn challenge_is_answered_once_with_the_same_password() {
    let mut transfer = transfer(user(AllowedAuthSchemes::ANY));
    assert_eq!(authorization(&mut transfer), None);
    assert_eq!(answer(&mut transfer, BEARER), "deliver", "there is no token");
    let mut transfer = self::transfer(user(AllowedAuthSchemes::ANY));
    assert_eq!(answer(&mut transfer, BASIC), "again");
    assert_eq!(authorization(&mut transfer).as_deref(), Some(BASIC_VALUE));
    assert_eq!(answer(&mut transfer, BASIC), "deliver");
    let mut anonymous = self::transfer(RequestOptions::default());
    assert_eq!(answer(&mut anonymous, BASIC), "deliver");
    assert_eq!(answer(&mut self::transfer(user(AllowedAuthSchemes::ANY)), "403 X"), "deliver");
}

#[test]
fn bearer_token_is_sent_after_its_challenge() {
    let allowed = AllowedAuthSchemes { bearer: true, ..AllowedAuthSchemes::ANY };
    let mut options = user(allowed);
    options.auth.bearer = Some(b"token"[..].into());
    let mut transfer = transfer(options);
    assert_eq!(authorization(&mut transfer), None);
    assert_eq!(answer(&mut transfer, BEARER), "again");
    assert_eq!(authorization(&mut transfer).as_deref(), Some("Bearer token"));
    assert_eq!(answer(&mut transfer, BEARER), "deliver", "the token is wrong");
}

#[test]
fn stale_nonces_are_answered_fifty_times() {
    let mut transfer = transfer(user(AllowedAuthSchemes::DIGEST));
    for number in 0..50 {
        let challenge = digest(&number.to_string(), ", stale=true");
        assert_eq!(answer(&mut transfer, &challenge), "again");
        let value = authorization(&mut transfer).unwrap();
        assert!(value.starts_with("Digest ") && value.contains(&format!("nonce=\"{number}\"")), "{value}");
    }
    assert_eq!(answer(&mut transfer, &digest("50", ", stale=true")), "deliver");
}

#[test]
fn fresh_nonce_means_a_wrong_password() {
    let options = user(AllowedAuthSchemes::DIGEST);
    let mut first = transfer(options.clone());
    assert_eq!(answer(&mut first, &digest("1", "")), "again");
    assert_eq!(answer(&mut first, &digest("2", "")), "deliver");
    let mut later = transfer(options);
    assert!(authorization(&mut later).is_some(), "the challenge is cached");
    assert_eq!(answer(&mut later, &digest("3", "")), "again", "the cached nonce may be old");
}

#[test]
fn digest_of_content_needs_it_in_memory() {
    let options = |body: RequestBody| RequestOptions {
        method: "PUT".into(),
        body: Some(body),
        ..user(AllowedAuthSchemes::DIGEST)
    };
    let challenge = digest("1", ", qop=\"auth-int\"");
    let mut streamed = transfer(options(RequestBody::reader(std::io::empty())));
    assert_eq!(answer(&mut streamed, &challenge), "fail");
    assert_eq!(answer(&mut transfer(options("x".into())), &challenge), "again");
    let mut plain = transfer(options(RequestBody::reader(std::io::empty())));
    assert_eq!(answer(&mut plain, &digest("1", ", qop=\"auth\"")), "again");
}

#[test]
fn one_shot_content_waits_for_the_challenge() {
    let options = || RequestOptions {
        method: "PUT".into(),
        body: Some(RequestBody::reader(std::io::empty())),
        ..user(AllowedAuthSchemes::DIGEST)
    };
    let mut transfer = transfer(options());
    assert!(request(&mut transfer).contains("Content-Length: 0\r\n"));
    respond(&mut transfer, "404 X");
    assert_eq!(decision(&transfer), "deliver");
    let mut refused = self::transfer(options());
    assert_eq!(answer(&mut refused, "300 X"), "deliver");
    let mut open = self::transfer(options());
    assert_eq!(answer(&mut open, "299 X\r\nContent-Length: 0"), "again", "the server wants no password");
    assert!(request(&mut open).contains("Transfer-Encoding: chunked\r\n"));
    respond(&mut open, "200 OK");
    assert_eq!(decision(&open), "deliver");
    let repeatable = RequestOptions { body: Some("12345".into()), ..options() };
    assert!(request(&mut self::transfer(repeatable.clone())).contains("Content-Length: 5\r\n"));
    let curl_compat = CurlCompat { withholds_content_before_challenge: true, ..CurlCompat::default() };
    let mut curl = self::transfer(RequestOptions { curl_compat: curl_compat.clone(), ..repeatable });
    assert!(request(&mut curl).contains("Content-Length: 0\r\n"));
    let get = RequestOptions { curl_compat, ..user(AllowedAuthSchemes::DIGEST) };
    assert_eq!(answer(&mut self::transfer(get), "200 OK"), "deliver", "there is no content");
    let basic = RequestOptions { auth: user(AllowedAuthSchemes::BASIC).auth, ..options() };
    assert!(request(&mut self::transfer(basic)).contains("chunked"), "the password is sent at once");
}

#[test]
fn one_shot_content_without_login_waits_for_nothing() {
    let any = AllowedAuthSchemes { bearer: true, negotiate: true, ..AllowedAuthSchemes::ANY };
    let mut nobody =
        RequestOptions { method: "PUT".into(), body: Some(RequestBody::reader(std::io::empty())), ..user(any) };
    nobody.auth.user = None;
    assert!(request(&mut transfer(nobody)).contains("Transfer-Encoding: chunked\r\n"));
}

#[test]
fn field_of_the_caller_replaces_the_credentials() {
    let fields = vec![("Authorization".to_owned(), b"own".to_vec())];
    let mut transfer = transfer(RequestOptions { fields, ..user(AllowedAuthSchemes::ANY) });
    assert_eq!(authorization(&mut transfer).as_deref(), Some("own"));
    assert_eq!(answer(&mut transfer, BASIC), "deliver");
}

#[test]
fn given_authorization_is_only_for_trusted_targets() {
    let options = RequestOptions { authorization: Some(b"given".to_vec()), ..RequestOptions::default() };
    let mut transfer = transfer(options);
    assert_eq!(authorization(&mut transfer).as_deref(), Some("given"));
    assert_eq!(answer(&mut transfer, BASIC), "deliver");
    transfer.current.secrets = SecretHandling::Drop;
    assert_eq!(authorization(&mut transfer), None);
}

#[test]
fn login_of_the_url_is_for_its_origin() {
    let redirected = |redirect_logins, location: &str| {
        let curl_compat = CurlCompat { redirect_logins, ..CurlCompat::default() };
        let options = following(RequestOptions { curl_compat, ..RequestOptions::default() }, false);
        let mut transfer = transfer_to("http://user:password@a.example/", options);
        assert_eq!(authorization(&mut transfer).as_deref(), Some(BASIC_VALUE));
        exchange(&mut transfer, &format!("302 X\r\nLocation: {location}"), "");
        authorization(&mut transfer)
    };
    assert_eq!(redirected(false, "/b").as_deref(), Some(BASIC_VALUE));
    assert_eq!(redirected(true, "/b").as_deref(), Some(BASIC_VALUE));
    assert_eq!(redirected(false, "http://u:p@a.example/b").as_deref(), Some(BASIC_VALUE));
    assert_eq!(redirected(true, "http://u:p@a.example/b").as_deref(), Some("Basic dTpw"));
    assert_eq!(redirected(false, "http://b.example/"), None);
}

#[test]
fn basic_is_repeated_after_redirect_as_curl_does() {
    let redirected = |redirect_logins, location_trusted, allowed| {
        let curl_compat = CurlCompat { redirect_logins, ..CurlCompat::default() };
        let mut transfer = transfer(following(RequestOptions { curl_compat, ..user(allowed) }, location_trusted));
        if allowed == AllowedAuthSchemes::ANY {
            assert_eq!(answer(&mut transfer, BASIC), "again");
            transfer.on_complete(Instant::now());
        }
        exchange(&mut transfer, "302 X\r\nLocation: http://b.example/", "");
        authorization(&mut transfer)
    };
    assert_eq!(redirected(true, true, AllowedAuthSchemes::ANY).as_deref(), Some(BASIC_VALUE));
    assert_eq!(redirected(false, true, AllowedAuthSchemes::ANY), None);
    assert_eq!(redirected(true, false, AllowedAuthSchemes::ANY), None);
    assert_eq!(redirected(true, true, AllowedAuthSchemes::DIGEST), None, "Basic was not chosen");
}

#[test]
fn malformed_challenge_fails_except_as_in_curl() {
    let challenge = "401 X\r\nWWW-Authenticate: Digest realm=\"a\"\r\nContent-Length: 0";
    assert_eq!(answer(&mut transfer(user(AllowedAuthSchemes::DIGEST)), challenge), "fail");
    let curl_compat = CurlCompat { accepts_unreliable_responses: true, ..CurlCompat::default() };
    let options = RequestOptions { curl_compat, ..user(AllowedAuthSchemes::DIGEST) };
    assert_eq!(answer(&mut transfer(options), challenge), "deliver");
}

#[test]
fn signed_request_covers_only_lasting_fields() {
    let mut options = user(AllowedAuthSchemes::BASIC);
    options.auth.signature = Some(Arc::new(SigV4Parameters::parse("aws:amz:region:service").unwrap()));
    let field = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    options.fields = vec![field("X-A", "1"), field("Connection", "x"), field("Host", "b.example")];
    let value = authorization(&mut transfer(options.clone())).unwrap();
    assert!(value.starts_with("AWS4-HMAC-SHA256 "), "{value}");
    assert!(value.contains("SignedHeaders=host;x-a;x-amz-date,"), "{value}");
    options.fields.push(field("Authorization", "own"));
    assert_eq!(authorization(&mut transfer(options)).as_deref(), Some("own"));
}

#[test]
fn message_is_signed_only_for_trusted_targets() {
    let signed = |fields: &[&str], secrets| {
        let signer = MessageSigner::new(SignatureAlgorithm::HmacSha256, b"00ff", "key", None).unwrap();
        let mut options = RequestOptions::default();
        options.auth.message_signature = Some(Arc::new(signer));
        options.fields = fields.iter().map(|name| ((*name).to_owned(), b"own".to_vec())).collect();
        let mut transfer = transfer(options);
        transfer.current.secrets = secrets;
        let text = request(&mut transfer);
        let count = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        (count("Signature: "), count("Signature-Input: "))
    };
    assert_eq!(signed(&[], SecretHandling::Keep), (1, 1));
    assert_eq!(signed(&[], SecretHandling::Drop), (0, 0));
    assert_eq!(signed(&["Signature"], SecretHandling::Keep), (1, 0));
    assert_eq!(signed(&["Signature-Input"], SecretHandling::Keep), (0, 1));
}

#[test]
fn head_before_withheld_content_is_delivered() {
    for (withholds_content_before_challenge, expected) in [(true, true), (false, false)] {
        let curl_compat = CurlCompat { withholds_content_before_challenge, ..CurlCompat::default() };
        let body = Some(RequestBody::reader(std::io::empty()));
        let options = user(AllowedAuthSchemes::DIGEST);
        let mut transfer = transfer(RequestOptions { curl_compat, body, include_head: true, ..options });
        assert_eq!(answer(&mut transfer, "200 OK\r\nContent-Length: 0"), "again");
        assert_eq!(!transfer.history.heads.is_empty(), expected);
    }
    let curl_compat = CurlCompat { withholds_content_before_challenge: true, ..CurlCompat::default() };
    let mut misdirected = transfer(RequestOptions { curl_compat, include_head: true, ..RequestOptions::default() });
    misdirected.reuse.on_connection(true, false);
    respond(&mut misdirected, "421 X");
    assert_eq!((decision(&misdirected), misdirected.history.heads.len()), ("again", 0));
}

#[test]
fn signature_needs_the_content_in_memory() {
    let signed = |body: RequestBody| {
        let mut options = RequestOptions { body: Some(body), ..user(AllowedAuthSchemes::BASIC) };
        options.auth.signature = Some(Arc::new(SigV4Parameters::parse("aws:amz:region:service").unwrap()));
        try_request(&mut transfer(options)).map(drop).map_err(|error| error.kind())
    };
    assert_eq!(signed("x".into()), Ok(()));
    assert_eq!(signed(RequestBody::pieces([])), Ok(()), "there is no content");
    assert_eq!(signed(RequestBody::reader(&b"x"[..])), Err(ErrorKind::Auth));
}

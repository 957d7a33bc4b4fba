use haul_policy::auth::{choose_scheme, parse_challenges};

use super::*;

const DIGEST: AllowedAuthSchemes = AllowedAuthSchemes { digest: true, ..AllowedAuthSchemes::NONE };

fn challenge(nonce: &str) -> DigestChallenge {
    let field = format!("Digest realm=\"r\", nonce=\"{nonce}\", qop=\"auth\"");
    match choose_scheme(&parse_challenges([field.as_bytes()]), DIGEST).unwrap() {
        ChosenAuthScheme::Digest(challenge) => challenge,
        other => panic!("{other:?}"),
    }
}

#[test]
fn transfer_answers_its_own_digest_challenge() {
    let (cache, credentials) = (AuthCache::default(), Credentials::new("u", "p").unwrap());
    let target = Target::parse("http://h/").unwrap();
    let answer = |own: Option<&DigestChallenge>| {
        let ask = AuthorizationInputs { target: &target, method: "GET", content: Some(b""), challenge: own };
        let (value, _) = cache.answer(&credentials, &ask).unwrap().unwrap();
        let text = String::from_utf8(value).unwrap();
        let part = |name: &str| text.split_once(name).unwrap().1.split([',', '"']).next().unwrap().to_owned();
        (part(" nonce=\""), part(" nc="))
    };
    let store = |challenge: &DigestChallenge| {
        cache.store_choice(&credentials, &target, &ChosenAuthScheme::Digest(challenge.clone()));
    };
    let (first, second) = (challenge("n1"), challenge("n2"));
    store(&first);
    store(&second);
    let expected = |nonce: &str, count: u32| (nonce.to_owned(), format!("{count:08x}"));
    assert_eq!(answer(Some(&first)), expected("n1", 1));
    assert_eq!(answer(Some(&second)), expected("n2", 1));
    assert_eq!(answer(None), expected("n2", 2));
    // A late response brings the earlier nonce again: its count continues.
    store(&first);
    assert_eq!(answer(None), expected("n1", 2));
    assert_eq!(answer(Some(&second)), expected("n2", 3));
    assert!(first.is_answered_by(b"Digest username=\"u\", nonce=\"n1\", nc=00000001"));
    assert!(!first.is_answered_by(b"Digest username=\"u\", nonce=\"n2\", nc=00000001"));
}

use haul_policy::auth::{choose_scheme, parse_challenges};

use super::*;

const DIGEST: AllowedAuthSchemes = AllowedAuthSchemes { digest: true, ..AllowedAuthSchemes::NONE };

fn challenge(nonce: &str) -> DigestChallenge {
    challenge_of_realm("r", nonce)
}

fn challenge_of_realm(realm: &str, nonce: &str) -> DigestChallenge {
    let field = format!("Digest realm=\"{realm}\", nonce=\"{nonce}\", qop=\"auth\"");
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

#[test]
fn transfer_answers_the_realm_that_challenged_it() {
    let (cache, credentials) = (AuthCache::default(), Credentials::new("u", "p").unwrap());
    let target = |path: &str| Target::parse(&format!("http://h{path}")).unwrap();
    let realms = [("/a", challenge_of_realm("a", "n1")), ("/b", challenge_of_realm("b", "n2"))];
    for (path, challenge) in &realms {
        cache.store_choice(&credentials, &target(path), &ChosenAuthScheme::Digest(challenge.clone()));
    }
    for (path, own) in &realms {
        let target = target(path);
        let ask = AuthorizationInputs { target: &target, method: "GET", content: Some(b""), challenge: Some(own) };
        let (value, _) = cache.answer(&credentials, &ask).unwrap().unwrap();
        assert!(own.is_answered_by(&value), "{path}");
    }
}

#[test]
fn earlier_nonces_are_limited_for_all_spaces() {
    let (cache, credentials) = (AuthCache::default(), Credentials::new("u", "p").unwrap());
    let target = Target::parse("http://h/").unwrap();
    for nonce in 0..2 * MAX_OLDER_NONCES {
        let challenge = challenge_of_realm(&format!("r{}", nonce % 2), &format!("n{nonce}"));
        cache.store_choice(&credentials, &target, &ChosenAuthScheme::Digest(challenge));
    }
    let kept: usize = cache.lock().iter().map(|space| space.older.len()).sum();
    assert_eq!(kept, MAX_OLDER_NONCES);
}

use super::*;

/// A test library whose tokens are words: it sends `first` or `HTTP@host first`, and then `second`.
/// The server must send `more`, and then `done`.
struct ScriptedLibrary;

struct ScriptedContext {
    name: String,
    rounds: usize,
    is_established: bool,
}

impl SecurityLibrary for ScriptedLibrary {
    fn context(&self, service: &str, host: &str, _: Delegation) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        if host == "unknown" {
            return Err(NegotiateError::Refused("no such host".into()));
        }
        Ok(Box::new(ScriptedContext { name: format!("{service}@{host}"), rounds: 0, is_established: false }))
    }
}

impl SecurityContext for ScriptedContext {
    fn step(&mut self, token: Option<&[u8]>) -> Result<Vec<u8>, NegotiateError> {
        self.rounds += 1;
        match (self.rounds, token) {
            (1, None) if self.name.ends_with("ticketless") => Err(NegotiateError::Refused("no ticket".into())),
            (1, None) => Ok(self.name.clone().into_bytes()),
            (2, Some(b"more")) => Ok(b"second".to_vec()),
            (2 | 3, Some(b"done")) => {
                self.is_established = true;
                Ok(Vec::new())
            }
            (2, Some(b"nothing")) => Ok(Vec::new()),
            _ => Err(NegotiateError::Refused("not genuine".into())),
        }
    }

    fn is_established(&self) -> bool {
        self.is_established
    }
}

fn options() -> NegotiateOptions {
    NegotiateOptions::with_library(Arc::new(ScriptedLibrary))
}

/// Returns a negotiation that has already sent its first token.
fn begun() -> Negotiation {
    let mut negotiation = Negotiation::default();
    let value = negotiation.authorization(&options(), "a", false).unwrap();
    assert_eq!(value, b"Negotiate SFRUUEBh", "HTTP@a");
    negotiation
}

#[test]
fn context_continues_only_on_the_same_connection() {
    for (is_same, expected) in [(true, "Negotiate c2Vjb25k"), (false, "Negotiate SFRUUEBh")] {
        let mut negotiation = begun();
        assert_eq!(negotiation.on_challenge(b"bW9yZQ==", true), Ok(true));
        assert!(negotiation.awaits_token() && !negotiation.sends_no_more_tokens());
        let value = negotiation.authorization(&options(), "a", is_same).unwrap();
        assert_eq!(String::from_utf8(value).unwrap(), expected);
        assert!(!negotiation.awaits_token());
    }
}

#[test]
fn challenge_without_token_ends_the_negotiation() {
    let mut first = Negotiation::default();
    assert_eq!(first.on_challenge(b"", false), Ok(true), "the first challenge has no token");
    for token in [&b""[..], b"bm90aGluZw=="] {
        let mut negotiation = begun();
        assert_eq!(negotiation.on_challenge(token, true), Ok(false));
        assert!(negotiation.sends_no_more_tokens());
    }
}

#[test]
fn hostile_negotiate_tokens_are_errors() {
    for token in ["====", "bW9yZQ", "*", "Zm9yZ2Vk", "bW9yZQ==bW9yZQ=="] {
        let mut negotiation = begun();
        assert!(negotiation.on_challenge(token.as_bytes(), true).is_err(), "{token}");
        assert!(negotiation.sends_no_more_tokens() && !negotiation.awaits_token());
        if token != "*" {
            let field = format!("Negotiate {token}");
            let checked = begun().check_proof([field.as_bytes()]);
            assert_eq!(checked.is_err(), !token.starts_with('='), "{token}: {checked:?}");
        }
    }
}

#[test]
fn wrong_server_proof_is_refused_and_missing_accepted() {
    let check = |fields: &[&[u8]]| begun().check_proof(fields.iter().copied());
    assert_eq!(check(&[b"Negotiate ZG9uZQ=="]), Ok(()));
    assert_eq!(check(&[b"Basic realm=x, Negotiate ZG9uZQ=="]), Ok(()));
    assert_eq!(check(&[]), Ok(()), "as in curl");
    assert_eq!(check(&[b"Negotiate"]), Ok(()));
    assert!(check(&[b"Negotiate Zm9yZ2Vk"]).is_err());
    assert!(check(&[b"Negotiate bm90aGluZw=="]).is_err(), "a context that is not established proves nothing");
}

#[test]
fn missing_ticket_ends_the_negotiation() {
    for host in ["ticketless", "unknown"] {
        let mut negotiation = Negotiation::default();
        assert!(matches!(negotiation.authorization(&options(), host, false), Err(NegotiateError::Refused(_))));
        assert!(negotiation.sends_no_more_tokens());
        assert_eq!(negotiation.on_challenge(b"", false), Ok(false));
    }
}

#[test]
fn only_clones_of_negotiate_options_are_equal() {
    let (one, other) = (options(), options());
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_eq!(NegotiateOptions::with_system_library(), NegotiateOptions::with_system_library());
    assert_ne!(one, NegotiateOptions { delegation: Delegation::Always, ..one.clone() });
}

//! Fuzzes SOCKS replies: the messages sent and the bytes used do not depend on how the replies are
//! cut.
#![no_main]

use haul_policy::auth::Credentials;
use haul_policy::proxy::ProxyKind;
use haul_policy::proxy::socks::{SocksDestination, SocksError, SocksHandshake, SocksStep};
use libfuzzer_sys::fuzz_target;

type SocksOutput = (Vec<Vec<u8>>, Result<Option<usize>, SocksError>);

fn play(kind: ProxyKind, me: Option<&Credentials>, gssapi: bool, replies: &[u8], size: usize) -> SocksOutput {
    let mut handshake = SocksHandshake::new(kind, SocksDestination::Name("h.example"), 80, me).expect("a short name");
    if gssapi {
        handshake = handshake.offering_gssapi();
    }
    let mut rounds = 0;
    let (mut used_in_all, mut sent) = (0, Vec::new());
    for chunk in replies.chunks(size.max(1)) {
        let mut rest = chunk;
        loop {
            match handshake.receive(rest) {
                Err(error) => return (sent, Err(error)),
                Ok((used, step)) => {
                    used_in_all += used;
                    rest = &rest[used..];
                    match step {
                        SocksStep::NeedMore => break assert!(rest.is_empty() && handshake.missing_bytes() > 0),
                        SocksStep::Send(bytes) => sent.push(bytes),
                        // The context is established in the third round.
                        SocksStep::Token(_) if rounds < 2 => {
                            rounds += 1;
                            sent.push(handshake.token_message(b"token").expect("a short token"));
                        }
                        SocksStep::Token(_) => sent.push(handshake.level_message(b"level").expect("a short token")),
                        SocksStep::Level(level) => match handshake.on_level(&level) {
                            Ok(request) => sent.push(request),
                            Err(error) => return (sent, Err(error)),
                        },
                        SocksStep::Done => {
                            assert_eq!(
                                (handshake.missing_bytes(), handshake.receive(rest)),
                                (0, Ok((0, SocksStep::Done)))
                            );
                            return (sent, Ok(Some(used_in_all)));
                        }
                    }
                }
            }
        }
    }
    (sent, Ok(None))
}

fuzz_target!(|data: &[u8]| {
    let Some((&pick, replies)) = data.split_first() else { return };
    let kind = if pick & 1 == 0 { ProxyKind::Socks4a } else { ProxyKind::Socks5h };
    let me = Credentials::new("u", "p").expect("no control byte");
    let me = Some(&me).filter(|_| pick & 2 == 0);
    let gssapi = pick & 4 == 0;
    let whole = play(kind, me, gssapi, replies, replies.len());
    assert_eq!(play(kind, me, gssapi, replies, 1), whole);
    assert_eq!(play(kind, me, gssapi, replies, usize::from(pick / 8)), whole);
    // The password goes to who asks for it, and to nobody else.
    assert!(whole.0.iter().all(|sent| sent != b"\x01\x01u\x01p" || me.is_some() && replies.starts_with(&[5, 2])));
});

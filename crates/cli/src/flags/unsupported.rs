//! What curl has and this version of haul has not: told apart from what nobody has.
//!
//! Only looked at when an option is about to be refused, so plain text does.

/// Long names of curl, without `no-`.
const NAMES: &str = "
    alpn append aws-sigv4 buffer ca-native capath cert-status ciphers compressed-ssh crlf crlfile
    curves delegation disable-eprt disable-epsv disallow-username-in-url dns-interface dns-ipv4-addr
    dns-ipv6-addr dns-servers doh-cert-status doh-insecure doh-url dump-ca-embed ech egd-file engine
    eprt epsv etag-compare etag-save fail-with-body false-start follow ftp-account
    ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv ftp-port ftp-pret ftp-skip-pasv-ip
    ftp-ssl ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control ftp-ssl-reqd hostpubmd5 hostpubsha256
    http0.9 http1.0 http3 http3-only ignore-content-length ip-tos
    ipfs-gateway krb krb4 libcurl list-only login-options mail-auth mail-from mail-rcpt
    mail-rcpt-allowfails manual metalink mptcp negotiate npn ntlm ntlm-wb out-null
    parallel-immediate pinnedpubkey proxy-ca-native proxy-capath proxy-ciphers proxy-crlfile
    proxy-http2 proxy-http3 proxy-negotiate proxy-ntlm proxy-pinnedpubkey proxy-service-name
    proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype
    proxy-tlspassword proxy-tlsuser proxy-tlsv1 proxy1.0 pubkey quote random-file rate raw
    remote-time request-target sasl-authzid sasl-ir service-name sessionid sigalgs socks5-basic
    socks5-gssapi socks5-gssapi-nec socks5-gssapi-service ssl ssl-allow-beast ssl-auto-client-cert
    ssl-no-revoke ssl-reqd ssl-revoke-best-effort ssl-sessions sslv2 sslv3 stderr styled-output
    suppress-connect-headers tcp-fastopen telnet-option tftp-blksize tftp-no-options time-cond
    tls-earlydata tls-max tls13-ciphers tlsauthtype tlspassword tlsuser tlsv1 tlsv1.0 tlsv1.1
    tr-encoding trace trace-ascii trace-config trace-ids trace-time upload-flags use-ascii variable
    vlan-priority xattr
";

/// Letters of curl.
const LETTERS: &[u8] = b"0123BMPQRaltz";

/// Why haul leaves an option out for good; `None` where it is only not there yet.
pub fn why(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"ntlm" | b"ntlm-wb" | b"proxy-ntlm" => "NTLM is broken: a password can be found from what it sends, --digest",
        b"negotiate" | b"proxy-negotiate" | b"socks5-gssapi" | b"delegation" => "Negotiate needs a Kerberos library",
        _ => return None,
    })
}

/// Whether curl has a long option of this name.
pub fn has_name(name: &[u8]) -> bool {
    NAMES.split_ascii_whitespace().any(|known| known.as_bytes() == name)
}

/// Whether curl has this letter.
pub fn has_letter(letter: u8) -> bool {
    LETTERS.contains(&letter)
}

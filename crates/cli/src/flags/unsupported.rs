//! What curl has and this version of haul has not: told apart from what nobody has.
//!
//! Only looked at when an option is about to be refused, so plain text does.

/// Long names of curl, without `no-`.
const NAMES: &str = "
    abstract-unix-socket alpn alt-svc anyauth append aws-sigv4 basic buffer ca-native capath cert
    cert-status cert-type ciphers compressed-ssh cookie-jar
    crlf crlfile curves data-ascii data-urlencode delegation digest disable-eprt disable-epsv
    disallow-username-in-url dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-cert-status
    doh-insecure doh-url dump-ca-embed ech egd-file engine eprt epsv etag-compare etag-save
    expect100-timeout fail-with-body false-start follow form form-escape form-string ftp-account
    ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv ftp-port ftp-pret ftp-skip-pasv-ip
    ftp-ssl ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control ftp-ssl-reqd get
    happy-eyeballs-timeout-ms haproxy-clientip haproxy-protocol hostpubmd5 hostpubsha256 hsts
    http0.9 http1.0 http3 http3-only ignore-content-length interface
    ip-tos ipfs-gateway junk-session-cookies keepalive keepalive-cnt keepalive-time key key-type
    krb krb4 libcurl list-only local-port location-trusted login-options mail-auth
    mail-from mail-rcpt mail-rcpt-allowfails manual metalink mptcp negotiate netrc netrc-file
    netrc-optional noproxy npn ntlm ntlm-wb out-null parallel-immediate pass pinnedpubkey post301
    post302 post303 preproxy proto proto-default proto-redir proxy proxy-anyauth proxy-basic
    proxy-ca-native proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers
    proxy-crlfile proxy-digest proxy-header proxy-http2 proxy-http3 proxy-insecure proxy-key
    proxy-key-type proxy-negotiate proxy-ntlm proxy-pass proxy-pinnedpubkey proxy-service-name
    proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype
    proxy-tlspassword proxy-tlsuser proxy-tlsv1 proxy-user proxy1.0 proxytunnel pubkey quote
    random-file rate raw remote-time request-target sasl-authzid
    sasl-ir service-name sessionid sigalgs socks4 socks4a socks5 socks5-basic
    socks5-gssapi socks5-gssapi-nec socks5-gssapi-service socks5-hostname
    ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort
    ssl-sessions sslv2 sslv3 stderr styled-output suppress-connect-headers tcp-fastopen tcp-nodelay
    telnet-option tftp-blksize tftp-no-options time-cond tls-earlydata tls-max tls13-ciphers
    tlsauthtype tlspassword tlsuser tlsv1 tlsv1.0 tlsv1.1 tr-encoding trace trace-ascii
    trace-config trace-ids trace-time unix-socket upload-file upload-flags url-query use-ascii
    variable vlan-priority xattr
";

/// Letters of curl.
const LETTERS: &[u8] = b"0123BEFGMPQRTUacjlnptxz";

/// Whether curl has a long option of this name.
pub fn has_name(name: &[u8]) -> bool {
    NAMES.split_ascii_whitespace().any(|known| known.as_bytes() == name)
}

/// Whether curl has this letter.
pub fn has_letter(letter: u8) -> bool {
    LETTERS.contains(&letter)
}

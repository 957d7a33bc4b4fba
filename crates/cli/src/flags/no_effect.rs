//! Options that are accepted without an effect, for compatibility with curl. The `doc` of each one
//! says why. [`curl_compat_page`](super::curl_compat_page) lists them as well.

use super::prelude::*;

/// A flag of curl that haul accepts, but whose value it ignores.
pub(super) struct NoEffectFlag(&'static FlagSpec);

impl FlagDefinition for NoEffectFlag {
    fn spec(&self) -> FlagSpec {
        *self.0
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = (value, args);
        Ok(())
    }
}

/// The fields that the specs of all flags without effect share. Each flag sets its own name, `doc`,
/// example and `see_also`.
const NO_EFFECT_SPEC: FlagSpec = FlagSpec {
    long: "",
    short: None,
    syntax: FlagSyntax::Switch,
    category: HelpCategory::General,
    important: false,
    help: "No effect, accepted for compatibility with curl",
    doc: "",
    example: "",
    see_also: "",
};

pub(super) const APPEND: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "append",
    short: Some('a'),
    doc: "Accepted for compatibility with curl. It concerns FTP uploads.",
    example: "haul --append https://example.com/",
    see_also: "upload-file",
    ..NO_EFFECT_SPEC
});

pub(super) const CRLF: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "crlf",
    doc: "Accepted for compatibility with curl. It concerns FTP and SMTP uploads; HTTP bodies are sent unchanged.",
    example: "haul --crlf https://example.com/",
    see_also: "upload-file",
    ..NO_EFFECT_SPEC
});

pub(super) const DISABLE_EPRT: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "disable-eprt",
    doc: "Accepted for compatibility with curl. It concerns FTP connections.",
    example: "haul --disable-eprt https://example.com/",
    see_also: "disable-epsv",
    ..NO_EFFECT_SPEC
});

pub(super) const DISABLE_EPSV: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "disable-epsv",
    doc: "Accepted for compatibility with curl. It concerns FTP connections.",
    example: "haul --disable-epsv https://example.com/",
    see_also: "disable-eprt",
    ..NO_EFFECT_SPEC
});

pub(super) const EGD_FILE: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "egd-file",
    syntax: FlagSyntax::Value("file"),
    doc: "Accepted for compatibility with curl. curl ignores it too.",
    example: "haul --egd-file x https://example.com/",
    see_also: "insecure",
    ..NO_EFFECT_SPEC
});

pub(super) const FALSE_START: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "false-start",
    doc: "Accepted for compatibility with curl. curl ignores it too.",
    example: "haul --false-start https://example.com/",
    see_also: "tlsv1.3",
    ..NO_EFFECT_SPEC
});

pub(super) const FTP_CREATE_DIRS: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ftp-create-dirs",
    doc: "Accepted for compatibility with curl. It concerns FTP uploads.",
    example: "haul --ftp-create-dirs https://example.com/",
    see_also: "create-dirs",
    ..NO_EFFECT_SPEC
});

pub(super) const FTP_PASV: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ftp-pasv",
    doc: "Accepted for compatibility with curl. It concerns FTP connections.",
    example: "haul --ftp-pasv https://example.com/",
    see_also: "disable-epsv",
    ..NO_EFFECT_SPEC
});

pub(super) const FTP_PORT: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ftp-port",
    short: Some('P'),
    syntax: FlagSyntax::Value("address"),
    doc: "Accepted for compatibility with curl. It concerns FTP connections. Some scripts say `-POST` and mean `-X \
          POST`; for curl, too, that is `-P OST`.",
    example: "haul --ftp-port - https://example.com/",
    see_also: "ftp-pasv request",
    ..NO_EFFECT_SPEC
});

pub(super) const FTP_SKIP_PASV_IP: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ftp-skip-pasv-ip",
    doc: "Accepted for compatibility with curl. It concerns FTP connections.",
    example: "haul --ftp-skip-pasv-ip https://example.com/",
    see_also: "ftp-pasv",
    ..NO_EFFECT_SPEC
});

pub(super) const NPN: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "npn",
    doc: "Accepted for compatibility with curl. NPN is obsolete; ALPN has replaced it.",
    example: "haul --npn https://example.com/",
    see_also: "alpn",
    ..NO_EFFECT_SPEC
});

pub(super) const PROXY_SSL_ALLOW_BEAST: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "proxy-ssl-allow-beast",
    doc: "Accepted for compatibility with curl. It concerns a flaw of TLS 1.0, which haul does not speak.",
    example: "haul --proxy-ssl-allow-beast https://example.com/",
    see_also: "tlsv1.2",
    ..NO_EFFECT_SPEC
});

pub(super) const PROXY_SSL_AUTO_CLIENT_CERT: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "proxy-ssl-auto-client-cert",
    doc: "Accepted for compatibility with curl. In curl, too, it only concerns TLS on Windows.",
    example: "haul --proxy-ssl-auto-client-cert https://example.com/",
    see_also: "crlfile",
    ..NO_EFFECT_SPEC
});

pub(super) const PROXY_TLSV1: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "proxy-tlsv1",
    doc: "Accepted for compatibility with curl. Connections to proxies always use TLS 1.2 or newer.",
    example: "haul --proxy-tlsv1 https://example.com/",
    see_also: "tlsv1",
    ..NO_EFFECT_SPEC
});

pub(super) const RANDOM_FILE: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "random-file",
    syntax: FlagSyntax::Value("file"),
    doc: "Accepted for compatibility with curl. curl ignores it too.",
    example: "haul --random-file x https://example.com/",
    see_also: "insecure",
    ..NO_EFFECT_SPEC
});

pub(super) const SSL: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ssl",
    doc: "Accepted for compatibility with curl. It concerns FTP and mail connections; with HTTP the scheme of the URL \
          decides whether TLS is used.",
    example: "haul --ssl https://example.com/",
    see_also: "ssl-reqd",
    ..NO_EFFECT_SPEC
});

pub(super) const SSL_ALLOW_BEAST: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ssl-allow-beast",
    doc: "Accepted for compatibility with curl. It concerns a flaw of TLS 1.0, which haul does not speak.",
    example: "haul --ssl-allow-beast https://example.com/",
    see_also: "tlsv1.2",
    ..NO_EFFECT_SPEC
});

pub(super) const SSL_AUTO_CLIENT_CERT: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ssl-auto-client-cert",
    doc: "Accepted for compatibility with curl. In curl, too, it only concerns TLS on Windows.",
    example: "haul --ssl-auto-client-cert https://example.com/",
    see_also: "crlfile",
    ..NO_EFFECT_SPEC
});

pub(super) const SSL_NO_REVOKE: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ssl-no-revoke",
    doc: "Accepted for compatibility with curl. In curl, too, it only concerns TLS on Windows.",
    example: "haul --ssl-no-revoke https://example.com/",
    see_also: "crlfile",
    ..NO_EFFECT_SPEC
});

pub(super) const SSL_REQD: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ssl-reqd",
    doc: "Accepted for compatibility with curl. It concerns FTP and mail connections; with HTTP the scheme of the URL \
          decides whether TLS is used.",
    example: "haul --ssl-reqd https://example.com/",
    see_also: "ssl proto",
    ..NO_EFFECT_SPEC
});

pub(super) const SSL_REVOKE_BEST_EFFORT: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "ssl-revoke-best-effort",
    doc: "Accepted for compatibility with curl. In curl, too, it only concerns TLS on Windows.",
    example: "haul --ssl-revoke-best-effort https://example.com/",
    see_also: "crlfile",
    ..NO_EFFECT_SPEC
});

pub(super) const SSLV2: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "sslv2",
    short: Some('2'),
    syntax: FlagSyntax::Once,
    doc: "Accepted for compatibility with curl. curl ignores it too, since SSL 2 is broken.",
    example: "haul --sslv2 https://example.com/",
    see_also: "tlsv1.2",
    ..NO_EFFECT_SPEC
});

pub(super) const SSLV3: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "sslv3",
    short: Some('3'),
    syntax: FlagSyntax::Once,
    doc: "Accepted for compatibility with curl. curl ignores it too, since SSL 3 is broken.",
    example: "haul --sslv3 https://example.com/",
    see_also: "tlsv1.2",
    ..NO_EFFECT_SPEC
});

pub(super) const TCP_NODELAY: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "tcp-nodelay",
    doc: "Accepted for compatibility with curl. haul always sends data at once, even with --no-tcp-nodelay.",
    example: "haul --tcp-nodelay https://example.com/",
    see_also: "keepalive",
    ..NO_EFFECT_SPEC
});

pub(super) const USE_ASCII: NoEffectFlag = NoEffectFlag(&FlagSpec {
    long: "use-ascii",
    short: Some('B'),
    doc: "Accepted for compatibility with curl. It concerns FTP transfers; HTTP bodies are delivered unchanged.",
    example: "haul --use-ascii https://example.com/",
    see_also: "output",
    ..NO_EFFECT_SPEC
});

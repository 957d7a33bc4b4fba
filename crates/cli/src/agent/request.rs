//! The request that a call hands to the agent: a URL and the engine's options, written as bytes and
//! read back.
//!
//! ```
//! use haul::RequestOptions;
//! use haul_cli::agent::request::Request;
//!
//! let mut options = RequestOptions { fail: true, ..RequestOptions::default() };
//! options.tls.verify = false;
//! let request = Request { url: "https://example.test/".into(), options };
//! let bytes = request.to_bytes().expect("it can go by the agent");
//! let again = Request::from_bytes(&bytes)?;
//! assert!(again.options.fail && !again.options.tls.verify);
//! # Ok::<(), haul_cli::agent::wire::Malformed>(())
//! ```
//!
//! [`Request::to_bytes`] returns `None` for a request that cannot be handed over (with content, a
//! jar, or an observer); the call then runs without the agent. So do settings that this module does
//! not know: the options are taken apart field by field, so that a new field fails to compile; and
//! where a type of the engine hides its fields, the written value is read back and compared. No
//! option is ever dropped silently.

use haul::RequestOptions;
use haul::net::connect::ConnectOptions;
use haul::net::dns::Family;
use haul::net::proxy::{ProxyAuth, ProxyOptions};
use haul::net::socket::Keepalive;
use haul::net::tls::{Identity, TlsOptions, TlsVersion};
use haul::request::{AsCurl, ConnectTo, Liberties, Span, SpeedLimit};
use haul::state::auth::{Allowed, Auth, Credentials, Netrc};
use haul_policy::proxy::{Environment, NoProxy, Proxy};
use haul_policy::range::validator::Validator;
use haul_policy::redirect::{RedirectRules, Secrets};
use haul_policy::retry::RetryRules;
use haul_policy::secrets::{may_send, may_send_as_curl};

use super::wire::{Malformed, Reader, Writer};

/// A request as the agent carries it out.
#[derive(Debug, Clone)]
pub struct Request {
    /// The URL, absolute. May hold a user and a password.
    pub url: String,
    /// The engine's options for the request.
    pub options: RequestOptions,
}

impl Request {
    /// Returns the request as bytes; `None` if it cannot go by the agent.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut writer = Writer::default();
        writer.text(&self.url);
        put(&mut writer, &self.options)?;
        let bytes = writer.into_bytes();
        let again = Self::from_bytes(&bytes).ok()?.options;
        let ours = &self.options;
        let same = again.tls == ours.tls
            && again.connect == ours.connect
            && again.redirects == ours.redirects
            && again.retry == ours.retry
            && again.decode_limits == ours.decode_limits
            && again.proxy.as_ref().map(|proxy| &proxy.tls) == ours.proxy.as_ref().map(|proxy| &proxy.tls);
        same.then_some(bytes)
    }

    /// Reads the bytes that [`Request::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Malformed`] when it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let url = reader.text()?;
        let options = get(&mut reader)?;
        reader.end()?;
        Ok(Self { url, options })
    }
}

/// Writes the options; `None` if one of them cannot be handed over.
fn put(writer: &mut Writer, options: &RequestOptions) -> Option<()> {
    let RequestOptions {
        method,
        fields,
        without,
        user_agent,
        authorization,
        auth,
        cookie,
        jar,
        hsts,
        alt_svc,
        referer,
        range,
        body,
        // It goes with the content.
        content_type: _,
        content_range: _,
        expect_timeout: _,
        decode,
        decode_limits,
        include_head,
        // They go with `include_head`.
        escape_head: _,
        head_only: _,
        fail,
        fail_with_body,
        redirects,
        retry,
        resume,
        request_target,
        as_curl,
        liberties,
        max_time,
        total_time,
        read_timeout,
        max_size,
        resume_from,
        span,
        limit_rate,
        speed_limit,
        // The agent has many callers: none gets several connections.
        split: _,
        path_as_is,
        family,
        connect,
        connect_to,
        prior_knowledge,
        tls,
        proxy,
        auto_referer,
        wants,
        // The pauses of the call do not reach the agent.
        pauses: _,
        trace,
        interrupt,
        keep_history,
    } = options;
    let AsCurl {
        // It belongs to `jar`.
        cookies_by_host: _,
        // All callers are commands.
        decodes_all: _,
        // It belongs to `include_head`.
        connect_heads: _,
        retries_whole,
        // They are about content.
        omits_empty: _,
        probes: _,
        spares_once: _,
        trusts_end,
        fails_tunnels,
        hands_on_fields,
    } = as_curl;
    // The agent binds all credentials to their origin.
    let is_handed_on = |name: &str| may_send_as_curl(name, Secrets::Drop) && !may_send(name, Secrets::Drop);
    let hands_on = *hands_on_fields && fields.iter().any(|(name, _)| is_handed_on(name));
    let stays =
        jar.is_some() || hsts.is_some() || alt_svc.is_some() || body.is_some() || trace.is_some() || wants.is_some();
    let is_own = hands_on
        || *retries_whole && retry.max > 0
        || interrupt.is_some()
        || *keep_history
        || *liberties != Liberties::default();
    // How connections are made, as far as the agent's are made otherwise.
    let like_ours = ConnectOptions {
        attempt_delay: connect.attempt_delay,
        timeout: connect.timeout,
        keepalive: connect.keepalive,
        ..ConnectOptions::default()
    };
    let is_old = proxy.as_ref().is_some_and(|proxy| proxy.http10);
    if stays || is_own || is_old || *connect != like_ours || *include_head || resume_from.is_some() {
        return None;
    }
    writer.text(method);
    writer.list(fields, |writer, (name, value)| {
        writer.text(name).bytes(value);
    });
    writer.list(without, |writer, name| {
        writer.text(name);
    });
    let text = |writer: &mut Writer, value: &Option<String>| {
        writer.maybe(value.as_deref(), Writer::text);
    };
    for value in [user_agent, authorization, cookie, referer] {
        writer.maybe(value.as_deref(), Writer::bytes);
    }
    put_auth(writer, auth)?;
    text(writer, range);
    text(writer, request_target);
    writer
        .flag(*decode)
        .flag(*fail)
        .flag(*fail_with_body)
        .flag(*resume)
        .flag(*path_as_is)
        .flag(*prior_knowledge)
        .flag(*auto_referer)
        .flag(*trusts_end)
        .flag(*fails_tunnels);
    put_rules(writer, redirects, retry);
    writer
        .maybe(*max_time, Writer::time)
        .maybe(*total_time, Writer::time)
        .maybe(*read_timeout, Writer::time)
        .maybe(*max_size, Writer::number)
        .maybe(*limit_rate, Writer::number);
    writer.maybe(*speed_limit, |writer, limit| writer.number(limit.bytes_per_second).time(limit.time));
    writer.maybe(span.as_ref(), put_span);
    writer.number(match family {
        Family::Any => 0,
        Family::V4 => 4,
        Family::V6 => 6,
    });
    writer.time(connect.attempt_delay).time(connect.timeout);
    writer.maybe(connect.keepalive, |writer, keepalive| {
        let count = keepalive.count.map(u64::from);
        writer.time(keepalive.idle).time(keepalive.interval).maybe(count, Writer::number)
    });
    writer.list(connect_to, |writer, entry| {
        text(writer, &entry.host);
        writer.maybe(entry.port.map(u64::from), Writer::number);
        text(writer, &entry.to_host);
        writer.maybe(entry.to_port.map(u64::from), Writer::number);
    });
    writer.maybe(decode_limits.max_output, Writer::number);
    put_tls(writer, tls);
    writer.flag(proxy.is_some());
    proxy.as_ref().map_or(Some(()), |proxy| put_proxy(writer, proxy))
}

fn get(reader: &mut Reader<'_>) -> Result<RequestOptions, Malformed> {
    let mut options = RequestOptions {
        method: reader.text()?,
        fields: reader.list(|reader| Ok((reader.text()?, reader.bytes()?.to_vec())))?,
        without: reader.list(Reader::text)?,
        user_agent: reader.maybe(Reader::bytes)?.map(<[u8]>::to_vec),
        authorization: reader.maybe(Reader::bytes)?.map(<[u8]>::to_vec),
        cookie: reader.maybe(Reader::bytes)?.map(<[u8]>::to_vec),
        referer: reader.maybe(Reader::bytes)?.map(<[u8]>::to_vec),
        auth: get_auth(reader)?,
        range: reader.maybe(Reader::text)?,
        request_target: reader.maybe(Reader::text)?,
        decode: reader.flag()?,
        fail: reader.flag()?,
        fail_with_body: reader.flag()?,
        resume: reader.flag()?,
        path_as_is: reader.flag()?,
        prior_knowledge: reader.flag()?,
        auto_referer: reader.flag()?,
        as_curl: AsCurl {
            omits_empty: true,
            decodes_all: true,
            trusts_end: reader.flag()?,
            fails_tunnels: reader.flag()?,
            ..AsCurl::default()
        },
        redirects: get_redirects(reader)?,
        retry: get_retry(reader)?,
        max_time: reader.maybe(Reader::time)?,
        total_time: reader.maybe(Reader::time)?,
        read_timeout: reader.maybe(Reader::time)?,
        max_size: reader.maybe(Reader::number)?,
        limit_rate: reader.maybe(Reader::number)?,
        speed_limit: reader
            .maybe(|reader| Ok(SpeedLimit { bytes_per_second: reader.number()?, time: reader.time()? }))?,
        span: reader.maybe(get_span)?,
        family: match reader.number()? {
            0 => Family::Any,
            4 => Family::V4,
            6 => Family::V6,
            _ => return Err(Malformed),
        },
        connect: ConnectOptions {
            attempt_delay: reader.time()?,
            timeout: reader.time()?,
            keepalive: reader.maybe(|reader| {
                let (idle, interval) = (reader.time()?, reader.time()?);
                Ok(Keepalive { idle, interval, count: reader.maybe(Reader::small)? })
            })?,
            ..ConnectOptions::default()
        },
        ..RequestOptions::default()
    };
    options.connect_to = reader.list(|reader| {
        Ok(ConnectTo {
            host: reader.maybe(Reader::text)?,
            port: reader.maybe(Reader::small)?,
            to_host: reader.maybe(Reader::text)?,
            to_port: reader.maybe(Reader::small)?,
        })
    })?;
    options.decode_limits.max_output = reader.maybe(Reader::number)?;
    options.tls = get_tls(reader)?;
    options.proxy = reader.maybe(get_proxy)?;
    Ok(options)
}

fn put_credentials<'w>(writer: &'w mut Writer, credentials: &Credentials) -> &'w mut Writer {
    writer.bytes(credentials.user()).bytes(credentials.password())
}

fn get_credentials(reader: &mut Reader<'_>) -> Result<Credentials, Malformed> {
    Credentials::new(reader.bytes()?, reader.bytes()?).map_err(|_| Malformed)
}

fn put_auth(writer: &mut Writer, auth: &Auth) -> Option<()> {
    let Auth { user, bearer, allowed, signature, netrc, memory: _ } = auth;
    if signature.is_some() || !matches!(netrc, Netrc::Off) {
        return None;
    }
    let Allowed { basic, digest, bearer: token } = *allowed;
    writer.maybe(user.as_ref(), put_credentials).maybe(bearer.as_deref(), Writer::bytes);
    writer.flag(basic).flag(digest).flag(token);
    Some(())
}

fn get_auth(reader: &mut Reader<'_>) -> Result<Auth, Malformed> {
    Ok(Auth {
        user: reader.maybe(get_credentials)?,
        bearer: reader.maybe(Reader::bytes)?.map(Into::into),
        allowed: Allowed { basic: reader.flag()?, digest: reader.flag()?, bearer: reader.flag()? },
        ..Auth::default()
    })
}

fn put_rules(writer: &mut Writer, redirects: &RedirectRules, retry: &RetryRules) {
    let RedirectRules {
        follow,
        max,
        post301,
        post302,
        post303,
        keep_method,
        is_post,
        allow_http,
        allow_https,
        location_trusted,
    } = *redirects;
    writer.flag(follow).number(max.into()).flag(post301).flag(post302).flag(post303).flag(keep_method);
    writer.maybe(is_post, Writer::flag);
    writer.flag(allow_http).flag(allow_https).flag(location_trusted);
    // Whose waits are curl's makes its further tries itself.
    let RetryRules {
        max,
        delay,
        max_time,
        connrefused,
        all_errors,
        resets,
        only_resets,
        any_method,
        waits_as_curl: _,
        cap,
    } = *retry;
    writer.number(max.into()).maybe(delay, Writer::time).maybe(max_time, Writer::time);
    writer.flag(connrefused).flag(all_errors).flag(resets).flag(only_resets).flag(any_method).time(cap);
}

fn get_redirects(reader: &mut Reader<'_>) -> Result<RedirectRules, Malformed> {
    Ok(RedirectRules {
        follow: reader.flag()?,
        max: reader.small()?,
        post301: reader.flag()?,
        post302: reader.flag()?,
        post303: reader.flag()?,
        keep_method: reader.flag()?,
        is_post: reader.maybe(Reader::flag)?,
        allow_http: reader.flag()?,
        allow_https: reader.flag()?,
        location_trusted: reader.flag()?,
    })
}

fn get_retry(reader: &mut Reader<'_>) -> Result<RetryRules, Malformed> {
    Ok(RetryRules {
        max: reader.small()?,
        delay: reader.maybe(Reader::time)?,
        max_time: reader.maybe(Reader::time)?,
        connrefused: reader.flag()?,
        all_errors: reader.flag()?,
        resets: reader.flag()?,
        only_resets: reader.flag()?,
        any_method: reader.flag()?,
        waits_as_curl: false,
        cap: reader.time()?,
    })
}

fn put_span<'w>(writer: &'w mut Writer, span: &Span) -> &'w mut Writer {
    match span {
        Span::Opening(bytes) => writer.flag(true).number(*bytes),
        Span::Rest { from, to, total, validator } => {
            writer.flag(false).number(*from).maybe(*to, Writer::number).number(*total).bytes(&validator.to_bytes())
        }
    }
}

fn get_span(reader: &mut Reader<'_>) -> Result<Span, Malformed> {
    if reader.flag()? {
        return Ok(Span::Opening(reader.number()?));
    }
    let (from, to, total) = (reader.number()?, reader.maybe(Reader::number)?, reader.number()?);
    let validator = Validator::from_bytes(reader.bytes()?).ok_or(Malformed)?;
    let fits = from < to.unwrap_or(total) && to.is_none_or(|to| to <= total);
    if fits { Ok(Span::Rest { from, to, total, validator }) } else { Err(Malformed) }
}

fn version(version: TlsVersion) -> u64 {
    match version {
        TlsVersion::V1_2 => 2,
        TlsVersion::V1_3 => 3,
        // A version that this module does not know: read back it is another, and the call goes
        // without the agent.
        _ => u64::MAX,
    }
}

fn get_version(reader: &mut Reader<'_>) -> Result<TlsVersion, Malformed> {
    match reader.number()? {
        2 => Ok(TlsVersion::V1_2),
        3 => Ok(TlsVersion::V1_3),
        _ => Err(Malformed),
    }
}

fn put_tls(writer: &mut Writer, tls: &TlsOptions) {
    writer
        .flag(tls.verify)
        .flag(tls.examine)
        .flag(tls.keep_certificates)
        .flag(tls.common_name)
        .maybe(tls.ca_file.as_deref(), Writer::path)
        .maybe(tls.ca_path.as_deref(), Writer::path);
    writer.maybe(tls.identity.as_ref(), |writer, identity| {
        writer.path(&identity.certificate).maybe(identity.key.as_deref(), Writer::path)
    });
    writer.number(version(tls.min_version)).number(version(tls.max_version));
    writer.list(&tls.alpn, |writer, protocol| {
        writer.bytes(protocol);
    });
    writer.flag(tls.sni);
}

fn get_tls(reader: &mut Reader<'_>) -> Result<TlsOptions, Malformed> {
    let mut tls = TlsOptions::default();
    tls.verify = reader.flag()?;
    tls.examine = reader.flag()?;
    tls.keep_certificates = reader.flag()?;
    tls.common_name = reader.flag()?;
    tls.ca_file = reader.maybe(Reader::path)?;
    tls.ca_path = reader.maybe(Reader::path)?;
    tls.identity =
        reader.maybe(|reader| Ok(Identity { certificate: reader.path()?, key: reader.maybe(Reader::path)? }))?;
    (tls.min_version, tls.max_version) = (get_version(reader)?, get_version(reader)?);
    tls.alpn = reader.list(|reader| Ok(reader.bytes()?.to_vec()))?;
    tls.sni = reader.flag()?;
    Ok(tls)
}

fn put_proxy(writer: &mut Writer, options: &ProxyOptions) -> Option<()> {
    let is_plain = options.preproxy.is_none() && options.fields.is_empty() && options.without.is_empty();
    if !is_plain || options.proxy.as_ref().is_some_and(|proxy| proxy.socket_path().is_some()) {
        return None;
    }
    writer.maybe(options.proxy.as_ref(), |writer, proxy| {
        writer.text(&proxy.to_string()).maybe(proxy.credentials(), put_credentials)
    });
    writer.list(&options.environment.variables(), |writer, (name, value)| {
        writer.text(name).text(value);
    });
    writer.maybe(options.no_proxy.as_ref().map(ToString::to_string).as_deref(), Writer::text);
    writer.maybe(options.credentials.as_ref(), put_credentials);
    writer.number(match options.auth {
        ProxyAuth::Basic => 0,
        ProxyAuth::Digest => 1,
        ProxyAuth::Any => 2,
    });
    writer.flag(options.tunnel).flag(options.http2);
    put_tls(writer, &options.tls);
    Some(())
}

fn get_proxy(reader: &mut Reader<'_>) -> Result<ProxyOptions, Malformed> {
    let mut options = ProxyOptions::default();
    options.proxy = reader.maybe(|reader| {
        let proxy = Proxy::parse(&reader.text()?).map_err(|_| Malformed)?;
        Ok(proxy.with_credentials(reader.maybe(get_credentials)?))
    })?;
    let variables = reader.list(|reader| Ok((reader.text()?, reader.text()?)))?;
    options.environment =
        Environment::read(|name| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()));
    options.no_proxy = reader.maybe(Reader::text)?.map(|text| NoProxy::parse(&text));
    options.credentials = reader.maybe(get_credentials)?;
    options.auth = match reader.number()? {
        0 => ProxyAuth::Basic,
        1 => ProxyAuth::Digest,
        2 => ProxyAuth::Any,
        _ => return Err(Malformed),
    };
    options.tunnel = reader.flag()?;
    options.http2 = reader.flag()?;
    options.tls = get_tls(reader)?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::agent::protocol::{Order, Stamp};

    /// One with something of every kind.
    fn request() -> Request {
        let login = || Credentials::new("me", "secret").ok();
        let second = Duration::from_secs(1);
        let mut options = RequestOptions {
            fields: vec![("Accept".into(), b"*/*".to_vec())],
            without: vec!["TE".into()],
            user_agent: Some("haul".into()),
            authorization: Some(b"Negotiate x".to_vec()),
            cookie: Some(b"a=b".to_vec()),
            auth: Auth { user: login(), bearer: Some(b"token".to_vec().into()), ..Auth::default() },
            referer: Some("http://r/".into()),
            range: Some("0-9".into()),
            request_target: Some("*".into()),
            max_time: Some(second),
            total_time: Some(second),
            read_timeout: Some(second),
            max_size: Some(1),
            limit_rate: Some(2),
            speed_limit: Some(SpeedLimit { bytes_per_second: 3, time: second }),
            span: Validator::from_bytes(b"\"x\"").map(|validator| Span::Rest {
                from: 4,
                to: Some(6),
                total: 7,
                validator,
            }),
            family: Family::V6,
            connect_to: vec![ConnectTo { host: None, port: Some(443), to_host: Some("o".into()), to_port: None }],
            ..RequestOptions::default()
        };
        options.connect.keepalive = Some(Keepalive { idle: second, interval: second, count: Some(5) });
        options.decode_limits.max_output = Some(8);
        options.redirects.is_post = Some(true);
        (options.retry.delay, options.retry.max_time, options.retry.only_resets) = (Some(second), Some(second), true);
        options.tls.ca_file = Some("/ca".into());
        options.tls.identity = Some(Identity { certificate: "/c".into(), key: Some("/k".into()) });
        options.tls.alpn = vec![b"h2".to_vec()];
        let variables = [("http_proxy", "http://e:1"), ("no_proxy", "d")];
        let mut proxy = ProxyOptions::default();
        proxy.proxy = Proxy::parse("socks5h://p:1").ok().map(|proxy| proxy.with_credentials(login()));
        proxy.environment = Environment::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        proxy.no_proxy = Some(NoProxy::parse("d,10.0.0.0/8"));
        proxy.credentials = login();
        options.proxy = Some(proxy);
        Request { url: "https://h/".into(), options }
    }

    #[test]
    fn a_request_comes_back_as_it_was_and_no_part_of_it_is_one() {
        let bytes = request().to_bytes().expect("all of it can go by the agent");
        let again = Request::from_bytes(&bytes).expect("it was just written");
        assert_eq!(format!("{:?}", again.options), format!("{:?}", request().options));
        assert_eq!(again.to_bytes(), Some(bytes.clone()));
        for cut in 0..bytes.len() {
            assert!(Request::from_bytes(&bytes[..cut]).is_err(), "{cut}");
        }
        assert!(Request::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }

    /// A seed of another version cannot be read, and its fields would never be tried. `UPDATE=1`
    /// writes a new seed.
    #[test]
    fn the_seed_of_the_fuzz_target_is_a_request_of_today() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/agent_frames/call");
        let files = vec![Stamp { path: "/a b".into(), what: [1, 2, 3, u64::MAX] }];
        let order = Order::Call { request: request().to_bytes().unwrap(), files };
        // The target cuts the frames after this many bytes.
        let seed = [&[9][..], &order.to_frame()].concat();
        if std::env::var_os("UPDATE").is_some() {
            fs::write(path, &seed).unwrap();
        }
        assert_eq!(fs::read(path).unwrap(), seed);
    }
}

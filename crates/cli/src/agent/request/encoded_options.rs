//! The tables of request-option fields that a caller sends to the agent, one table for each option
//! type.

use haul::RequestOptions;
use haul::body::DecodeLimits;
use haul::net::dns::AddressFamily;
use haul::net::happy_eyeballs::ConnectOptions;
use haul::net::proxy::{ProxyAuthScheme, ProxyOptions};
use haul::net::socket::TcpKeepalive;
use haul::net::tls::{ClientCertificateFiles, TlsOptions, TlsVersion};
use haul::request::{ConnectToRule, CurlCompat, H1Deviations, Http3Policy, SpeedLimit, StallLimit, WantedContentRange};
use haul::state::auth::{AllowedAuthSchemes, AuthOptions, Credentials};
use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment};
use haul_policy::range::validator::Validator;
use haul_policy::redirect::RedirectRules;
use haul_policy::retry::RetryRules;

use crate::agent::message_encoding::{
    AgentValue, AgentValueDecoder, AgentValueEncoder, MalformedAgentValue, frame_fields, frame_numbers,
};

frame_fields! {
    RequestOptions {
        method,
        fields,
        without,
        user_agent,
        authorization,
        cookie,
        referer,
        auth,
        range,
        request_target,
        decode,
        fail,
        fail_with_body,
        resume,
        path_as_is,
        prior_knowledge,
        http3,
        auto_referer,
        curl_compat,
        deviations,
        redirects,
        retry,
        max_time,
        total_time,
        read_timeout,
        write_timeout,
        stall,
        max_size,
        limit_rate,
        speed_limit,
        span,
        family,
        connect,
        connect_to,
        decode_limits,
        tls,
        proxy,
    }
    // `AgentRequest::to_bytes` refuses a request that sets one of these.
    unsent {
        jar,
        hsts,
        alt_svc,
        body,
        include_head,
        resume_from,
        wants,
        trace,
        recorder,
        interrupt,
        keep_history,
        limit_rate_total,
        fresh_connection,
        closes_connection,
        // These go with `body`.
        content_type,
        content_range,
        expect_timeout,
        // These go with `include_head`.
        escape_head,
        head_only,
        // The agent has many callers: none gets several connections.
        split,
        // The observer of pauses stays in the call.
        pauses,
        // The agent has a cache of its own.
        http3_cache,
        // The agent's requests are in no batch.
        pool_timeout,
    }
    from RequestOptions::default()
}

frame_fields! {
    CurlCompat { accepts_unreliable_responses, refused_tunnel_is_status_error, head_limits, spells_as_curl, redirect_logins }
    unsent {
        // `AgentRequest::to_bytes` refuses a request for which one of these matters.
        retries_whole,
        keeps_secret_fields_across_origins,
        // It belongs to `jar`.
        cookies_by_host,
        // It belongs to `include_head`.
        connect_heads,
        partial_heads,
        // These are about content.
        withholds_content_before_challenge,
        expect_for_one_shot_content,
        // All callers are commands.
        omits_zero_content_length,
        strict_content_coding,
    }
    from CurlCompat { omits_zero_content_length: true, strict_content_coding: true, ..CurlCompat::default() }
}

frame_fields! {
    H1Deviations { tolerant, follows_http10, verbatim_fields }
    // `AgentRequest::to_bytes` refuses a request that sets one of these.
    unsent { http10, http09, ignore_length, raw, codings, upgraded }
    from H1Deviations::default()
}

frame_fields! {
    AuthOptions { user, bearer, allowed }
    // `AgentRequest::to_bytes` refuses a request with one of these but the last.
    unsent { signature, message_signature, negotiate, netrc, memory }
    from AuthOptions::default()
}

frame_fields! {
    AllowedAuthSchemes { basic, digest, bearer }
    // `AgentRequest::to_bytes` refuses a request that allows it.
    unsent { negotiate }
    from AllowedAuthSchemes::NONE
}

frame_fields! {
    RedirectRules {
        follow,
        permanent_only,
        max,
        post301,
        post302,
        post303,
        keep_method,
        is_post,
        allow_http,
        allow_https,
        location_trusted,
    }
}

frame_fields! {
    RetryRules {
        max,
        delay,
        max_time,
        connrefused,
        all_errors,
        resets,
        only_resets,
        unknown_names,
        any_method,
        waits_as_curl,
        cap,
    }
}

frame_fields!(SpeedLimit { bytes_per_second, time });

frame_fields!(StallLimit { time, awaits_head });

frame_fields! {
    ConnectOptions { attempt_delay, timeout, keepalive }
    // `AgentRequest::to_bytes` refuses a request that sets one of these.
    unsent {
        interface,
        local_ports,
        type_of_service,
        priority,
        multipath,
        fast_open,
        unix_socket,
        haproxy_protocol,
        haproxy_client,
    }
    from ConnectOptions::default()
}

frame_fields!(TcpKeepalive { idle, interval, count });

frame_fields!(ConnectToRule { host, port, to_host, to_port });

frame_fields! {
    DecodeLimits as open { max_output }
    from DecodeLimits::default()
}

frame_fields! {
    TlsOptions as open {
        verify,
        examine,
        keep_certificates,
        common_name,
        ca_file,
        ca_path,
        identity,
        min_version,
        max_version,
        alpn,
        sni,
    }
    from TlsOptions::default()
}

frame_fields!(ClientCertificateFiles { certificate, key });

frame_fields! {
    ProxyOptions as open { proxy, environment, no_proxy, credentials, auth, tunnel, http2, tls }
    from ProxyOptions::default()
}

frame_numbers!(AddressFamily { Any = 0, V4 = 4, V6 = 6 });
frame_numbers!(Http3Policy { Off = 0, Learned = 1, Race = 2, Only = 3 });
frame_numbers!(ProxyAuthScheme { Basic = 0, Digest = 1, Any = 2, Negotiate = 3, AnyOrNegotiate = 4 });
frame_numbers!(TlsVersion as open { V1_2 = 2, V1_3 = 3 });

impl AgentValue for Credentials {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        writer.put_bytes(self.user());
        writer.put_bytes(self.password());
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        Credentials::new(reader.get_bytes()?, reader.get_bytes()?).map_err(|_| MalformedAgentValue)
    }
}

impl AgentValue for Validator {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        writer.put_bytes(&self.to_bytes());
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        Validator::from_bytes(reader.get_bytes()?).ok_or(MalformedAgentValue)
    }
}

impl AgentValue for WantedContentRange {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        matches!(self, WantedContentRange::Opening(_)).encode(writer);
        match self {
            WantedContentRange::Opening(bytes) => bytes.encode(writer),
            WantedContentRange::Rest { from, to, total, validator } => {
                from.encode(writer);
                to.encode(writer);
                total.encode(writer);
                validator.encode(writer);
            }
        }
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        if bool::decode(reader)? {
            return Ok(WantedContentRange::Opening(u64::decode(reader)?));
        }
        let (from, to, total) = (u64::decode(reader)?, Option::<u64>::decode(reader)?, u64::decode(reader)?);
        let validator = Validator::decode(reader)?;
        let fits = from < to.unwrap_or(total) && to.is_none_or(|to| to <= total);
        if fits { Ok(WantedContentRange::Rest { from, to, total, validator }) } else { Err(MalformedAgentValue) }
    }
}

impl AgentValue for Proxy {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        self.to_string().encode(writer);
        self.credentials().cloned().encode(writer);
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        let proxy = Proxy::parse(&String::decode(reader)?).map_err(|_| MalformedAgentValue)?;
        Ok(proxy.with_credentials(AgentValue::decode(reader)?))
    }
}

impl AgentValue for NoProxy {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        self.to_string().encode(writer);
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        String::decode(reader).map(|text| NoProxy::parse(&text))
    }
}

/// Encodes the names and values of the environment variables that name proxies.
impl AgentValue for ProxyEnvironment {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        let variables: Vec<(String, String)> =
            self.variables().into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        variables.encode(writer);
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        let variables = Vec::<(String, String)>::decode(reader)?;
        let value_of = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        Ok(ProxyEnvironment::from_variables(value_of))
    }
}

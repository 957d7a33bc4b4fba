use super::*;
use crate::plan::{CookieArgs, KeepaliveArgs, NetrcFileText, ProxyArgs, Secret, StageArgs, StateFileArg, TransferArgs};
use haul::state::auth::Delegation;
use haul_policy::Target;
use haul_policy::auth::{AllowedAuthSchemes, SigV4Parameters};

fn stage(args: &[&str]) -> StageArgs {
    group(&[args, &["u"]].concat()).stages.remove(0)
}

fn transfer(args: &[&str]) -> TransferArgs {
    Arc::unwrap_or_clone(stage(args).transfer)
}

fn proxy(args: &[&str]) -> ProxyArgs {
    Arc::unwrap_or_clone(stage(args).proxy)
}

fn code(args: &[&str]) -> u8 {
    read(&[args, &["u"]].concat()).expect_err("it is refused").exit_code()
}

#[test]
fn user_option_yields_user_and_password() {
    let user = |args: &[&str]| stage(args).request.auth.user;
    assert_eq!(user(&["-u", "me"]), Credentials::new("me", "typed").ok());
    assert_eq!(user(&["-u", "me:"]), Credentials::new("me", "").ok());
    assert_eq!(user(&["-u", ":p"]), Credentials::new("", "p").ok());
    let error = read(&["-u", "you", "u"]).expect_err("nobody types");
    assert!(error.to_string().contains("no terminal") && error.exit_code() == 2, "{error}");
    let token = stage(&["-u", "you", "--oauth2-bearer", "t"]).request.auth;
    assert_eq!((token.user, token.bearer), (None, Some(Secret::new("t"))));
    assert_eq!(code(&["--oauth2-bearer", "a b"]), 2);
    assert_eq!(proxy(&["-U", "me"]).user, Credentials::new("me", "proxied").ok());
}

#[test]
fn auth_scheme_options_add_to_the_allowed_schemes() {
    let allowed = |args: &[&str]| stage(args).request.auth.allowed;
    let both = AllowedAuthSchemes::ANY;
    let any = AllowedAuthSchemes { negotiate: cfg!(feature = "negotiate"), ..both };
    for (args, expected) in [
        (&[][..], AllowedAuthSchemes::BASIC),
        (&["--basic"], AllowedAuthSchemes::BASIC),
        (&["--digest"], AllowedAuthSchemes::DIGEST),
        (&["--digest", "--basic"], both),
        (&["--anyauth"], any),
        (&["--anyauth", "--no-basic"], AllowedAuthSchemes { basic: false, ..any }),
        (&["--negotiate"], AllowedAuthSchemes::NEGOTIATE),
        (&["--negotiate", "-u", ":"], AllowedAuthSchemes::NEGOTIATE),
        (&["--anyauth", "--no-anyauth"], AllowedAuthSchemes::BASIC),
        (&["--oauth2-bearer", "t"], AllowedAuthSchemes { bearer: true, ..AllowedAuthSchemes::NONE }),
        (&["--oauth2-bearer", "t", "--basic"], AllowedAuthSchemes { bearer: true, ..AllowedAuthSchemes::BASIC }),
    ] {
        assert_eq!(allowed(args), expected, "{args:?}");
    }
    assert_eq!(
        stage(&["--aws-sigv4", ""]).request.auth.signature.as_deref(),
        SigV4Parameters::parse("aws:amz").ok().as_ref()
    );
    assert_eq!(code(&["--aws-sigv4", "aws:amz:no region"]), 2);
    assert_eq!(proxy(&["--proxy-digest"]).allowed, AllowedAuthSchemes::DIGEST);
    let any = AllowedAuthSchemes { negotiate: cfg!(feature = "negotiate"), ..AllowedAuthSchemes::ANY };
    assert_eq!(proxy(&["--proxy-anyauth"]).allowed, any);
    assert_eq!(proxy(&["--proxy-negotiate"]).allowed, AllowedAuthSchemes::NEGOTIATE);
    let given = ["--service-name", "a", "--proxy-service-name", "b", "--delegation", "Policy"];
    let (of_server, of_proxy) = (stage(&given).request.auth.negotiate, proxy(&given).negotiate);
    assert_eq!((of_server.service.as_deref(), of_proxy.service.as_deref()), (Some("a"), Some("b")));
    assert_eq!([of_server.delegation, of_proxy.delegation], [Delegation::Policy; 2]);
    assert_eq!(code(&["--delegation", "some"]), 2);
    for option in ["--ntlm", "--proxy-ntlm"] {
        let error = read(&[option, "u"]).expect_err(option);
        assert!(matches!(error.reason(), UsageErrorReason::Refused(_)) && error.exit_code() == 2, "{error}");
    }
}

#[test]
fn strongest_proxy_scheme_excludes_the_others() {
    let any = AllowedAuthSchemes { negotiate: cfg!(feature = "negotiate"), ..AllowedAuthSchemes::ANY };
    for (args, expected) in [
        (&["--proxy-basic", "--proxy-digest"][..], AllowedAuthSchemes::DIGEST),
        (&["--proxy-digest", "--proxy-basic"], AllowedAuthSchemes::DIGEST),
        (&["--proxy-digest", "--proxy-negotiate"], AllowedAuthSchemes::NEGOTIATE),
        (&["--proxy-basic", "--proxy-digest", "--no-proxy-digest"], AllowedAuthSchemes::BASIC),
        (&["--proxy-anyauth", "--proxy-digest"], any),
        (&["--proxy-anyauth", "--no-proxy-digest"], any),
        (&["--proxy-digest", "--proxy-anyauth", "--no-proxy-anyauth"], AllowedAuthSchemes::DIGEST),
    ] {
        assert_eq!(proxy(args).allowed, expected, "{args:?}");
    }
}

#[test]
fn cookie_options_are_joined_into_one_field() {
    let cookie = |args: &[&str]| stage(args).request.cookie.map(|text| String::from_utf8(text).expect("text"));
    assert_eq!(cookie(&["-b", "a=1;b=2", "-b", "c=3"]).as_deref(), Some("a=1;b=2; c=3"));
    assert_eq!(cookie(&["-b", "a=1", "-b", " b=2", "-b", "\tc=3"]).as_deref(), Some("a=1; b=2;\tc=3"));
}

#[test]
fn netrc_file_is_read_into_the_plan() {
    let netrc = |args: &[&str]| stage(args).request.auth.netrc;
    let text = || std::sync::Arc::from(&b"machine h login l password secret"[..]);
    assert!(netrc(&[]) == NetrcFileText::Off && netrc(&["-n", "--no-netrc"]) == NetrcFileText::Off);
    assert!(
        netrc(&["-n"]) == NetrcFileText::Required(text())
            && netrc(&["--netrc-file", "netrc"]) == NetrcFileText::Required(text())
    );
    assert!(netrc(&["--netrc-optional"]) == NetrcFileText::Optional(text()));
    assert!(netrc(&["--netrc-optional", "--netrc-file", "netrc"]) == NetrcFileText::Optional(text()));
    assert!(netrc(&["--netrc-optional", "--netrc-file", "none"]) == NetrcFileText::Off);
    assert_eq!(code(&["--netrc-file", "none"]), 26);
    let shown = format!("{:?}", stage(&["-n", "-u", "me:secret"]));
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn proxy_is_chosen_by_option_then_environment() {
    let way = |args: &[&str], url: &str| {
        let target = Target::parse(url).expect("a URL");
        proxy(args).proxy_for(&target).map(|proxy| proxy.map(|proxy| proxy.to_string()))
    };
    let env = || Ok(Some("http://env.example:1080".to_owned()));
    assert_eq!(way(&[], "http://h/"), env());
    assert_eq!(way(&[], "http://direct.example/"), Ok(None));
    assert!(way(&[], "https://h/").is_err(), "what the environment says is read when it is needed");
    assert_eq!(way(&["--noproxy", ""], "http://direct.example/"), env());
    assert_eq!(way(&["--noproxy", "*"], "http://h/"), Ok(None));
    assert_eq!(way(&["-x", ""], "http://h/"), Ok(None));
    let given = |url| way(&["-x", "https://p.example"], url);
    assert_eq!(given("https://h/"), Ok(Some("https://p.example:443".to_owned())));
    assert_eq!(given("http://direct.example/"), Ok(None));
    for (option, expected) in [
        ("--socks4", "socks4://p:1080"),
        ("--socks4a", "socks4a://p:1080"),
        ("--socks5", "socks5://p:1080"),
        ("--socks5-hostname", "socks5h://p:1080"),
    ] {
        assert_eq!(way(&["-x", "q", option, "p"], "http://h/"), Ok(Some(expected.to_owned())));
    }
    let target = Target::parse("http://h/").expect("a URL");
    let own = |args: &[&str]| proxy(args).proxy_for(&target).ok().flatten().and_then(|p| p.credentials().cloned());
    assert_eq!(own(&[]), Credentials::new("u", "secret").ok());
    assert_eq!(own(&["-U", "a:b"]), Credentials::new("u", "secret").ok());
    assert_eq!(own(&["-x", "u:v@p", "-U", "a:b"]), Credentials::new("u", "v").ok());
    assert_eq!(own(&["-x", "p", "-U", "a:b"]), Credentials::new("a", "b").ok());
}

#[test]
fn invalid_proxies_exit_with_the_codes_of_curl() {
    for (args, expected) in [
        (&["-x", "foo://secret@x"][..], 7),
        (&["-x", "secret:x"], 5),
        (&["--socks5", "secret:x"], 5),
        (&["--socks5", ""], 2),
        (&["--preproxy", "http://secret"], 2),
        (&["--preproxy", "secret", "--socks5", "p"], 2),
    ] {
        let error = read(&[args, &["u"]].concat()).expect_err("no proxy");
        assert_eq!(error.exit_code(), expected, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let all = proxy(&["--proxy-header", "X: secret", "-p", "--preproxy", "s", "-x", "p", "--proxy-insecure"]);
    assert!(all.tunnel && !all.tls.options.verify && all.preproxy.is_some());
    assert_eq!(all.fields, [set("X", "secret")]);
    let shown = format!("{all:?}");
    assert!(!shown.contains("secret") && shown.contains("X"), "{shown}");
}

#[test]
fn then_stage_inherits_no_credentials() {
    let args = [
        "-u",
        "me:p",
        "-n",
        "-b",
        "a=b",
        "-b",
        "jar",
        "-c",
        "jar",
        "-j",
        "--cert",
        "me.pem",
        "--location-trusted",
        "-x",
        "p",
        "--hsts",
        "",
        "u",
        "--extract",
        "a",
        "--then",
        "http://h/{}",
    ];
    let stages = group(&args).stages;
    let [first, second] = &stages[..] else { panic!("two stages") };
    assert!(first.transfer.tls.client.certificate.is_some() && first.transfer.options.redirects.location_trusted);
    assert_eq!(second.request.auth, crate::plan::AuthArgs::default());
    assert_eq!(second.request.cookie, None);
    assert!(second.transfer.tls.client.certificate.is_none() && !second.transfer.options.redirects.location_trusted);
    let jar = || PathBuf::from("jar");
    let cookies =
        CookieArgs { files: vec![jar()], engine: false, jar: Some(jar()), junk_session: true, as_curl: false };
    assert_eq!((&first.transfer.cookies, &second.transfer.cookies), (&cookies, &cookies));
    assert_eq!(second.transfer.hsts, StateFileArg::Memory);
    let target = Target::parse("http://h/").expect("a URL");
    assert!(second.proxy.proxy_for(&target).expect("a proxy").is_some());
}

#[test]
fn connection_options_reach_plan_and_invalid_values_fail() {
    let connect = |args: &[&str]| transfer(args).options.connect;
    let keepalive = |args: &[&str]| transfer(args).keepalive;
    assert_eq!(keepalive(&["--no-keepalive", "--keepalive-time", "5"]), None);
    let seconds = std::time::Duration::from_secs;
    assert_eq!(
        keepalive(&["--keepalive-time", "5", "--keepalive-cnt", "3", "--keepalive-intvl", "2"]),
        Some(KeepaliveArgs { time: seconds(5), interval: Some(seconds(2)), count: 3 }),
    );
    assert_eq!(keepalive(&["--keepalive-time", "0", "--keepalive-cnt", "0"]), Some(KeepaliveArgs::default()));
    assert_eq!(connect(&["--happy-eyeballs-timeout-ms", "0"]), Default::default());
    for (name, service) in
        [("EF", 0xb8), ("CS0", 0), ("VOICE-ADMIT", 0xb0), ("255", 255), ("LOWCOST", 2), ("AF11", 0x28)]
    {
        assert_eq!(connect(&["--ip-tos", name]).type_of_service, Some(service), "{name}");
    }
    assert_eq!(connect(&["--vlan-priority", "7"]).priority, Some(7));
    let proxied = connect(&["--haproxy-clientip", "::1"]);
    assert!(proxied.haproxy_protocol && proxied.haproxy_client.is_some_and(|address| address.is_ipv6()));
    for args in [
        &["--local-port", "5-3"][..],
        &["--haproxy-clientip", "h"],
        &["--keepalive-cnt", "128"],
        &["--ip-tos", "ef"],
        &["--ip-tos", "256"],
        &["--vlan-priority", "8"],
        &["--cert-type", "ENG"],
        &["--key-type", "P12"],
        &["--interface", "ifhost!a"],
        &["--unix-socket", ""],
        &["--abstract-unix-socket", ""],
    ] {
        assert_eq!(code(args), 2, "{args:?}");
    }
    assert_eq!(plan(&["--key", "k", "u"]).warnings, ["--key does nothing without --cert"]);
}

#[test]
fn proto_options_restrict_redirects() {
    let rules = |args: &[&str]| transfer(args).redirect_rules(false, None);
    let restricted = rules(&["--proto-redir", "=https", "--post301", "--max-redirs", "-1"]);
    assert_eq!(
        (restricted.allow_http, restricted.allow_https, restricted.post301, restricted.max),
        (false, true, true, u32::MAX)
    );
    assert!(!rules(&["--proto", "=https"]).allow_http);
    assert_eq!(code(&["--proto-default", "ftp"]), 1);
    // A typing error must not allow what was to be forbidden; what allows nothing is one, too.
    for list in ["=htps", "https,-htp", "-all", "=https,-https"] {
        assert_eq!((code(&["--proto", list]), code(&["--proto-redir", list])), (2, 2), "{list}");
    }
    assert!(!rules(&["--proto-redir", "-all,+ftp"]).allow_https);
    let trusting = rules(&["--no-location", "--location-trusted"]);
    assert!(trusting.location_trusted && trusting.follow && rules(&["--no-location-trusted"]).follow);
}

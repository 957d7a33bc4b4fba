use std::thread;

use std::net::{Ipv4Addr, Ipv6Addr};

use super::fixed_and_cached_answers::MAX_NAMES;
use super::*;

fn v4(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

/// Returns a resolver whose lookup function waits for a message before each answer, and the sender
/// of these messages.
fn gated(answer: fn(&str) -> io::Result<Vec<IpAddr>>) -> (Resolver, mpsc::Sender<()>) {
    let (gate, words) = mpsc::channel::<()>();
    let words = Mutex::new(words);
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), move |host| {
        words.lock().unwrap().recv().map_err(io::Error::other)?;
        answer(host)
    });
    (resolver, gate)
}

fn ready(lookup: LookupStatus) -> Result<Arc<[IpAddr]>> {
    match lookup {
        LookupStatus::Ready(answer) => answer,
        LookupStatus::Pending => panic!("still pending"),
    }
}

#[test]
fn concurrent_lookups_of_one_name_are_merged() {
    let (resolver, gate) = gated(|_| Ok(vec![v4(1), v4(1)]));
    let (told, hear) = mpsc::channel();
    for number in 0..5 {
        let told = told.clone();
        let host = if number % 2 == 0 { "a.test" } else { "A.TEST" };
        assert!(matches!(
            resolver.lookup(host, 80, AddressFamily::Any, move || told.send(number).unwrap()),
            LookupStatus::Pending
        ));
    }
    gate.send(()).unwrap();
    let mut heard: Vec<_> = (0..5).map(|_| hear.recv().unwrap()).collect();
    heard.sort_unstable();
    assert_eq!(heard, [0, 1, 2, 3, 4]);
    let answer = ready(resolver.lookup("a.test", 443, AddressFamily::Any, || unreachable!())).unwrap();
    assert_eq!(&*answer, [v4(1)], "duplicates are dropped, and the port does not matter");
    assert_eq!(resolver.lookup_count(), 1);
}

#[test]
fn slow_name_lookup_does_not_delay_others() {
    let (gate, words) = mpsc::channel::<()>();
    let words = Mutex::new(words);
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), move |name| {
        if name.starts_with("silent") {
            words.lock().unwrap().recv().map_err(io::Error::other)?;
        }
        Ok(vec![v4(1)])
    });
    for number in 0..40 {
        let lookup = resolver.lookup(&format!("silent{number}.test"), 80, AddressFamily::Any, || ());
        assert!(matches!(lookup, LookupStatus::Pending));
    }
    let (sender, receiver) = mpsc::channel();
    resolver.lookup("good.test", 80, AddressFamily::Any, move || sender.send(()).unwrap());
    receiver.recv().unwrap();
    assert!(ready(resolver.lookup("good.test", 80, AddressFamily::Any, || ())).is_ok());
    drop(gate);
}

#[test]
fn failed_lookups_expire_sooner_than_answers() {
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |host| match host {
        "good.test" => Ok(vec![v4(1)]),
        _ => Err(io::Error::other("no such name")),
    });
    resolver.resolve("good.test", 80, AddressFamily::Any, None).unwrap();
    let error = resolver.resolve("Bad.test", 80, AddressFamily::Any, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resolve);
    assert_eq!(error.to_string(), "could not resolve host: Bad.test: no such name");
    let now = Instant::now();
    let at = |seconds, host| {
        resolver.lookup_at(
            now + Duration::from_secs(seconds),
            host,
            80,
            AddressFamily::Any,
            LookupCaller::BlockingThread,
            Box::new(|| ()),
        )
    };
    assert!(ready(at(1, "good.test")).is_ok());
    assert!(ready(at(1, "bad.test")).is_err());
    assert!(matches!(at(4, "bad.test"), LookupStatus::Pending));
    assert!(ready(at(59, "good.test")).is_ok());
    assert!(matches!(at(61, "good.test"), LookupStatus::Pending));
}

#[test]
fn lookup_answers_can_be_cached_for_ever() {
    let options = DnsCacheOptions { ttl: Duration::MAX, negative_ttl: Duration::MAX };
    let resolver = Resolver::with_lookup(options, |host| match host {
        "good.test" => Ok(vec![v4(1)]),
        _ => Ok(Vec::new()),
    });
    resolver.add_override("+fixed.test:80:127.0.0.2").unwrap();
    let later = Instant::now() + Duration::from_secs(10 * 365 * 86_400);
    for (host, is_there) in [("good.test", true), ("bad.test", false), ("fixed.test", true)] {
        assert_eq!(resolver.resolve(host, 80, AddressFamily::Any, None).is_ok(), is_there, "{host}");
        assert_eq!(
            ready(resolver.lookup_at(
                later,
                host,
                80,
                AddressFamily::Any,
                LookupCaller::BlockingThread,
                Box::new(|| ())
            ))
            .is_ok(),
            is_there,
            "{host}"
        );
    }
}

#[test]
fn panicking_lookup_function_fails_all_waiting_callers() {
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| panic!("the program's own"));
    let soon = Instant::now() + Duration::from_secs(60);
    for deadline in [None, Some(soon)] {
        for name in ["a.test", "b.test"] {
            let error = resolver.resolve(name, 80, AddressFamily::Any, deadline).unwrap_err();
            assert_eq!(error.to_string(), format!("could not resolve host: {name}: the look-up panicked"));
        }
    }
    let error = resolver.resolve("c.test", 80, AddressFamily::Any, Some(soon)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resolve, "on a helper thread, too");
}

#[test]
fn lookup_failing_with_emfile_keeps_the_errno() {
    let resolver =
        Resolver::with_lookup(DnsCacheOptions::default(), |_| Err(io::Error::from_raw_os_error(libc::EMFILE)));
    let error = resolver.resolve("a.test", 80, AddressFamily::Any, None).unwrap_err();
    assert_eq!(error.io_source().unwrap().raw_os_error(), Some(libc::EMFILE));
    let later = Instant::now() + Duration::from_secs(1);
    assert!(matches!(
        resolver.lookup_at(later, "a.test", 80, AddressFamily::Any, LookupCaller::BlockingThread, Box::new(|| ())),
        LookupStatus::Pending
    ));
}

#[test]
fn lookup_that_missed_deadline_still_fills_cache() {
    let (resolver, gate) = gated(|_| Ok(vec![v4(7)]));
    let error = resolver.resolve("slow.test", 80, AddressFamily::Any, Some(Instant::now())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    gate.send(()).unwrap();
    let far = Instant::now() + Duration::from_secs(600);
    assert_eq!(&*resolver.resolve("slow.test", 80, AddressFamily::Any, Some(far)).unwrap(), [v4(7)]);
    assert_eq!(resolver.lookup_count(), 1);
}

#[test]
fn lookup_without_deadline_starts_no_thread() {
    let here = thread::current().id();
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), move |_| {
        assert_eq!(thread::current().id(), here);
        Ok(vec![v4(1)])
    });
    resolver.resolve("a.test", 80, AddressFamily::Any, None).unwrap();
    assert_eq!(resolver.shared().lock().threads, 0);
}

#[test]
fn lookup_returns_only_addresses_of_the_family() {
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| Ok(vec![v4(1), v4(2)]));
    assert_eq!(resolver.resolve("a.test", 80, AddressFamily::V4, None).unwrap().len(), 2);
    let error = resolver.resolve("a.test", 80, AddressFamily::V6, None).unwrap_err();
    assert_eq!(error.to_string(), "could not resolve host: a.test: it has no IPv6 address");
    let both = resolver.resolve("localhost", 80, AddressFamily::Any, None).unwrap();
    assert_eq!(&*both, [IpAddr::V6(Ipv6Addr::LOCALHOST), v4(1)]);
    assert_eq!(&*resolver.resolve("x.LocalHost.", 80, AddressFamily::V4, None).unwrap(), [v4(1)]);
    assert_eq!(&*resolver.resolve("[::1]", 80, AddressFamily::Any, None).unwrap(), [IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    assert_eq!(resolver.lookup_count(), 1);
}

#[test]
fn overrides_are_parsed_like_curl() {
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| Ok(vec![v4(200)]));
    for spec in ["a.test:80:127.0.0.1,", "*:80:127.0.0.9,[::1]", "+soon.test:80:127.0.0.3", "[0::1]:80:127.0.0.4"] {
        resolver.add_override(spec).unwrap();
    }
    let get = |host, port| resolver.resolve(host, port, AddressFamily::Any, None).unwrap();
    assert_eq!(&*get("A.test", 80), [v4(1)]);
    assert_eq!(&*get("a.test", 81), [v4(200)], "another port is looked up");
    assert_eq!(&*get("b.test", 80), [v4(9), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    assert_eq!(&*get("localhost", 80), &*get("b.test", 80));
    assert_eq!(&*get("::1", 80), [v4(4)]);
    assert_eq!(&*get("soon.test", 80), [v4(3)]);
    resolver.add_override("-*:80").unwrap();
    let later = Instant::now() + Duration::from_secs(61);
    assert!(matches!(
        resolver.lookup_at(later, "soon.test", 80, AddressFamily::Any, LookupCaller::BlockingThread, Box::new(|| ())),
        LookupStatus::Pending
    ));
    for wrong in
        ["", "a.test", "a.test:80", "a.test:http:1.2.3.4", "a.test:80:nowhere", "a.test:80:", ":80:1.2.3.4", "-a"]
    {
        let error = resolver.add_override(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Setup, "{wrong}");
    }
}

#[test]
fn dns_cache_size_is_bounded() {
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| Ok(vec![v4(1)]));
    for number in 0..2 * MAX_NAMES + 10 {
        resolver.resolve(&format!("{number}.test"), 80, AddressFamily::Any, None).unwrap();
    }
    let names = resolver.shared().lock().names.len();
    assert!((MAX_NAMES / 2..=MAX_NAMES).contains(&names), "{names}");
}

#[test]
fn recently_used_name_stays_in_full_cache() {
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), |_| Ok(vec![v4(1)]));
    let resolve = |name: &str| resolver.resolve(name, 80, AddressFamily::Any, None).unwrap();
    for number in 0..2 * MAX_NAMES as u64 {
        resolve("often.test");
        resolve(&format!("{number}.test"));
        assert_eq!(resolver.lookup_count(), number + 2);
    }
}

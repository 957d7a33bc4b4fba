//! Tests of paginated listings in a fleet: the order of pages, memory, retries, and credentials.

use crate::common;

use std::sync::Arc;

use common::{retrying, run, single_stage, threads};
use haul::fleet::{FleetOptions, FleetStage};
use haul::pagination::Pagination;
use haul::{Client, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::rng::Rng;

fn stages(options: &RequestOptions, pagination: Pagination) -> Vec<FleetStage> {
    single_stage(options)
        .into_iter()
        .map(|stage| FleetStage { pagination: Some(Arc::new(pagination.clone())), ..stage })
        .collect()
}

/// Returns the pages of `/api/page` for `total` items in pages of `size`, and the empty page at the
/// end.
fn pages(total: u64, size: u64) -> Vec<String> {
    let item = |id: u64| format!("{{\"id\":{id},\"name\":\"item {id}\"}}");
    let page = |from: u64| format!("[{}]\n", (from..(from + size).min(total)).map(item).collect::<Vec<_>>().join(","));
    (0..=total.div_ceil(size)).map(|number| page(number * size)).collect()
}

#[test]
fn listings_keep_page_order_with_any_memory() {
    let origin = Origin::builder().threads(2).start().unwrap();
    for seed in 0..24 {
        let mut rng = Rng::new(seed);
        let listings: Vec<(u64, u64)> = (0..1 + rng.below(30)).map(|_| (rng.below(60), 1 + rng.below(9))).collect();
        let urls: Vec<String> = listings
            .iter()
            .enumerate()
            .map(|(number, (total, size))| {
                let prefix = ["", "/flaky/1", "/delay/3", "/limited/0"][number % 4];
                origin.url(&format!("{prefix}/api/page?total={total}&size={size}&seed={seed}-{number}"))
            })
            .collect();
        let all: Vec<Vec<String>> = listings.iter().map(|(total, size)| pages(*total, *size)).collect();
        let expected: usize = all.iter().map(Vec::len).sum();
        let options = FleetOptions {
            max_memory: [1, 2000, 1 << 20][rng.below(3) as usize],
            parallel: 1 + rng.below(20) as usize,
            unordered: rng.below(3) == 0,
            ..threads(1 + rng.below(2) as usize)
        };
        let unordered = options.unordered;
        let stages = stages(&retrying(2), Pagination::by_count("page").unwrap());
        let ran = run(&Client::new(), stages, options, urls);
        let summary = ran.summary();
        assert_eq!((summary.succeeded, summary.failed), (expected as u64, 0), "seed {seed}: {:?}", summary.causes);
        let output = String::from_utf8(ran.output).unwrap();
        if unordered {
            let (mut lines, mut pages): (Vec<&str>, Vec<String>) = (output.lines().collect(), all.concat());
            lines.sort_unstable();
            pages.sort_unstable();
            assert_eq!(lines, pages.iter().map(|page| page.trim_end()).collect::<Vec<_>>(), "seed {seed}");
        } else {
            assert_eq!(output, all.concat().concat(), "seed {seed}");
        }
    }
}

#[test]
fn broken_listing_page_is_fetched_again() {
    let json = ["{\"next\": \"/2\"}", "{\"next\": \"/3\"}", "{\"next\": null}"];
    let html = ["<a href='/2'>1</a>", "<a href='/3'>2</a>", "<a href='#'>top</a>"];
    let cases = [(Pagination::by_json("$.next"), json), (Pagination::by_css("a@href"), html)];
    for (pagination, bodies) in cases {
        let page = |body: &str, sent: usize| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            vec![ScriptStep::ReadHead, ScriptStep::send(head + &body[..sent])]
        };
        let whole = |body: &str| page(body, body.len());
        // The second page breaks off after 4 bytes, as a page of the second listing, which waits.
        let scripts = [whole(bodies[0]), page(bodies[1], 4), whole(bodies[1]), whole(bodies[2])];
        let broken = H1Peer::start(scripts.to_vec());
        let slow = Origin::builder().start().unwrap();
        let urls = [slow.url("/delay/300/status/200"), broken.url("/1")];
        let stages = stages(&retrying(2), pagination.unwrap());
        let ran = run(&Client::new(), stages, threads(1), urls);
        let output = String::from_utf8(ran.output.clone()).unwrap();
        assert!(output.ends_with(&bodies.concat()), "{output}");
        assert!(broken.received(2).starts_with(b"GET /2 "));
    }
}

#[test]
fn compressed_pages_are_decoded_before_the_search() {
    let origin = Origin::builder().start().unwrap();
    // A text that is no JSON: the search fails, and the page is printed.
    let options = RequestOptions { decode: true, ..RequestOptions::default() };
    let stages = stages(&options, Pagination::by_json("$.next").unwrap());
    let ran = run(&Client::new(), stages, threads(1), [origin.url("/gzip/5000")]);
    assert_eq!((ran.summary().failed, ran.summary().exit_code, ran.output.len()), (1, 61, 5000));
}

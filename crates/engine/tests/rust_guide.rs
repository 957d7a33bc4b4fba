//! The examples of docs/rust.md as printed there, each in a function that a test runs. `site()`
//! returns the address of the test's server for https://example.org/.

#![allow(clippy::let_and_return, reason = "the examples name their results")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use haul::Client;
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

/// The address of the test's server.
static SITE: OnceLock<String> = OnceLock::new();

fn site() -> &'static str {
    SITE.get().expect("the test has started the server")
}

type Outcome = Result<(), Box<dyn Error>>;

fn one_request() -> Result<String, Box<dyn Error>> {
    let client = haul::Client::new();
    let response = client.get(site()).query([("q", "a b")]).send()?;
    println!("{} {}", response.status(), response.header("content-type").unwrap_or("?"));
    let text = response.text()?;
    Ok(text)
}

fn built_client() -> Client {
    use haul::state::cookie_jar::SharedCookieJar;

    let client = haul::Client::builder()
        .user_agent("example/1.0")
        .timeout(Duration::from_secs(30))
        .jar(SharedCookieJar::new())
        .proxy_from_environment()
        .options(|options| options.retry.max = 3)
        .build();
    client
}

fn client_with_certificates() -> Result<Client, Box<dyn Error>> {
    use haul::net::tls::Pem;

    let (authority, identity) = (std::fs::read("ca.pem")?, std::fs::read("me.pem")?);
    let client = Client::builder()
        .options(|options| {
            options.tls.ca_pem = Some(Pem::new(authority));
            options.tls.identity_pem = Some(Pem::new(identity));
        })
        .build();
    Ok(client)
}

fn client_with_http2() -> Client {
    let client =
        Client::builder().options(|options| options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()]).build();
    client
}

fn many_at_once(client: &Client, urls: impl Iterator<Item = String>) -> Outcome {
    use haul::batch::BatchOptions;

    let requests = urls.map(|url| client.get(&url).build().expect("a URL"));
    for (index, reply) in client.fetch_all(requests, BatchOptions::default()) {
        println!("{index}: {}", reply?.status());
    }
    Ok(())
}

async fn by_futures(client: &Client, url: &str) -> Outcome {
    let mut response = client.get(url).send_async().await?;
    while let Some(piece) = response.chunk().await? {
        println!("{} bytes", piece.len());
    }
    Ok(())
}

#[cfg(feature = "http")]
fn by_types_of_http(client: &Client, url: &str) -> Outcome {
    let request = http::Request::put(url).header("x-trace", "7").body("text")?;
    let response: http::Response<Vec<u8>> = client.request_from(request).send()?.try_into()?;
    assert_eq!(response.status(), 200);
    Ok(())
}

#[test]
fn rust_guide_examples_run() {
    let origin = Origin::builder().start().unwrap();
    SITE.set(origin.url("/small/5")).unwrap();
    assert_eq!(one_request().unwrap(), "small 5\n");
    let dir = tempfile::tempdir().unwrap();
    let certificates = TestCertificates::for_names(&["localhost"]);
    fs::write(dir.path().join("ca.pem"), certificates.ca_pem()).unwrap();
    fs::write(dir.path().join("me.pem"), format!("{}{}", certificates.chain_pem(), certificates.key_pem())).unwrap();
    // The example names its files without a directory.
    std::env::set_current_dir(dir.path()).unwrap();
    client_with_certificates().unwrap().get(site()).send().unwrap();
    let client = client_with_http2();
    many_at_once(&client, (0..3).map(|number| origin.url(&format!("/bytes/{number}")))).unwrap();
    pollster::block_on(by_futures(&built_client(), &origin.url("/small"))).unwrap();
    #[cfg(feature = "http")]
    by_types_of_http(&client, &origin.url("/echo")).unwrap();
}

#[test]
fn rust_guide_has_no_untested_examples() {
    // The guide's lines are shorter than those of a source file.
    let trimmed = |text: &str| text.split_whitespace().collect::<String>();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The repository's guides are not in the archive of the crate.
    let Ok(guide) = fs::read_to_string(root.join("../../docs/rust.md")) else { return };
    let source = trimmed(include_str!("rust_guide.rs"));
    let blocks: Vec<&str> = guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 7, "{blocks:?}");
    for block in blocks {
        let block = block.replace("\"https://example.org/\"", "site()");
        assert!(source.contains(&trimmed(&block)), "rust_guide.rs does not have this example:\n{block}");
    }
}

//! Example: sends the same request many times on one connection, so that a profiler can count
//! instructions, allocations and system calls.
//!
//! ```text
//! cargo run --release -p httphaul --example repeated_requests -- http://127.0.0.1:8080/ 1000 [BODY]
//! ```

use std::time::Duration;

use haul::request::RequestOverrides;
use haul::{Client, Request, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which URL?")?;
    let times: u32 = arguments.next().ok_or("how often?")?.parse()?;
    let body = arguments.next();
    let client = Client::builder().timeout(Duration::from_secs(30)).build();
    let target = Target::parse(&url)?;
    let mut bytes = 0;
    for _ in 0..times {
        let own = match &body {
            Some(body) => RequestOverrides {
                method: Some("POST".into()),
                fields: vec![("Content-Type".into(), b"application/x-www-form-urlencoded".to_vec())],
                body: Some(body.as_str().into()),
                ..RequestOverrides::default()
            },
            None => RequestOverrides::default(),
        };
        let request = Request::new(target.clone(), client.options().clone(), own);
        bytes += client.call(request)?.body.len();
    }
    println!("{bytes} bytes");
    Ok(())
}

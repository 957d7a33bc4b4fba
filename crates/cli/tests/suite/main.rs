//! The command's tests, one module a subject, in one program: each further program would link the
//! engine again.
//!
//! `cargo test -p httphaul-cli --test suite outputs` runs one module.

#[path = "../common/mod.rs"]
mod common;
mod rigs;

mod agent;
mod apt_method;
mod as_curl_does;
mod big_get;
mod callers;
mod clock;
mod cold;
mod curls_release;
mod differential;
mod direct_path;
mod extraction;
mod failures;
mod fetcher;
mod file_urls;
mod h2;
mod h2_servers;
mod in_curls_place;
mod newer_curl;
mod one_and_many;
mod option_effects;
mod order_memory;
mod outputs;
mod package_managers;
mod programs;
mod real_auth;
mod real_bodies;
mod real_ends;
mod real_mtls;
mod real_pins;
mod real_proxies;
mod real_redirects;
mod real_state;
mod recipes;
mod retries_tls;
mod stats;
mod system_faults;
mod told;
mod trust;
mod verbose;

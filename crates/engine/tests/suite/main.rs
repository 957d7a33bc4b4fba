//! The engine's tests, one module a subject, in one program: each further program would link the
//! engine again. A test that changes its process (limits, forks, allocator) stands beside this folder.
//!
//! `cargo test -p httphaul --test suite resume` runs one module.

#[path = "../common/mod.rs"]
mod common;
mod direct;
mod h2;
mod models;
mod proxy;
mod ranged;

mod alt_svc;
mod body_model;
mod carry_auth;
mod carry_bodies;
mod carry_identity;
mod direct_bodies;
mod direct_faults;
mod exchange_as_curl;
mod exchange_bodies;
mod exchange_framing;
mod exchange_rules;
mod face_async;
mod face_errors;
mod face_response;
mod face_uploads;
mod fleet_failures;
mod fleet_model;
mod fleet_order;
mod fleet_pipeline;
mod fleet_stages;
mod h2_bodies;
mod h2_faults;
mod h2_hostile;
mod h2_limits;
mod h2_shared;
mod h2_streams;
mod net_connect;
mod net_local;
mod net_proxy;
mod net_proxy_http2;
mod net_proxy_real;
mod net_tls;
mod partial_files;
mod resume;
mod review_exchange;
mod review_fleet;
mod secrets_model;
mod secrets_ways;
mod session_model;
mod span;
mod split;
mod stingy;
mod tls_answers;
mod trust;

//! The engine's tests. Each subject has a module. All modules are in one program, because every
//! further program would link the engine again. Tests that change their process (limits, forks,
//! allocator) are separate programs beside this folder.
//!
//! `cargo test -p httphaul --test suite resume` runs one module.

#[path = "../common/mod.rs"]
mod common;
mod support;

mod advisories;
mod alt_svc;
mod api_async;
mod api_response;
mod body_transfers_under_random_faults;
mod connections_to_many_hosts;
mod content_decoding;
mod curl_compat;
mod dns;
mod encrypted_client_hello;
mod error_classification;
mod exchange_records;
mod failures;
mod fleet_adaptive_concurrency;
mod fleet_failures;
mod fleet_model;
mod fleet_order;
#[cfg(feature = "select")]
mod fleet_pagination;
mod fleet_pipelining;
mod fleet_record_checksums;
mod fleet_retries;
mod fleet_silent_hosts;
mod fleet_stages;
mod h1_bodies;
mod h1_framing;
mod h2_bodies;
mod h2_coalescing;
mod h2_goaway_and_resets;
mod h2_hostile;
mod h2_stream_limits;
mod h2_streams;
#[cfg(feature = "http3")]
mod h3_bodies;
#[cfg(feature = "http3")]
mod h3_choice;
#[cfg(feature = "http3")]
mod h3_coalescing;
#[cfg(feature = "http3")]
mod h3_connection_failures;
#[cfg(feature = "http3")]
mod h3_hostile;
#[cfg(feature = "http3")]
mod h3_idle_timeout;
#[cfg(feature = "http3")]
mod h3_lossy_links;
#[cfg(feature = "http3")]
mod h3_split_download;
mod local_addresses_and_unix_sockets;
mod net_connect;
mod partial_files;
#[cfg(unix)]
mod paused_output_reader;
mod prefix_and_rest_requests;
mod proxy_digest_auth;
mod proxy_failures;
mod proxy_http;
mod proxy_http2;
mod proxy_socks;
mod proxy_third_party;
mod redirects;
mod refused_requests;
mod request_auth;
mod request_bodies;
mod resume;
mod resume_responses;
mod retries;
mod secrets_model;
mod secrets_via_proxies;
mod sendfile_uploads;
mod session_model;
mod splice_bodies;
mod splice_broken_connections;
mod split_download;
mod streamed_uploads;
#[cfg(all(unix, feature = "http3"))]
mod suspended_process;
mod throttling_servers;
mod time_rate_and_size_limits;
mod tls_client_certificate;
mod tls_handshake_failures;
mod tls_in_memory;

//! Starts servers and proxies from Debian with configurations for these tests.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod compare_with_curl;
pub mod proxies;
pub mod start_apache;
pub mod start_nginx;

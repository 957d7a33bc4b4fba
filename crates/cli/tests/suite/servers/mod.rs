//! Starts servers and proxies from Debian with configurations for these tests.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod apache;
pub mod compare_with_curl;
pub mod nginx;
pub mod proxies;

//! Starts servers and proxies from Debian with configurations for these tests.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod apache_server;
pub mod compare_with_curl;
pub mod nginx_server;
pub mod proxies;

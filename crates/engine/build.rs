//! Defines the cfg `linux_calls`: calls that only Linux has are used. It is set on Linux, unless
//! the feature `portable` asks for the code of other systems (docs/design/systems.md).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(linux_calls)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_PORTABLE").is_none() {
        println!("cargo::rustc-cfg=linux_calls");
    }
}

//! Links the unwinder statically into the program if the C compiler has it as an archive. The
//! program then has one shared library less to map, relocate and initialise, which takes an eighth
//! of its start (docs/design/startup.md). Otherwise the unwinder stays `libgcc_s.so.1`.
//!
//! Packs the relocations if the C library reads packed ones, so that less is read and done at each
//! start.
//!
//! Defines the cfg `linux_calls`, as the build script of the engine does.

mod build_script_linking;

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build_script_linking.rs");
    define_linux_calls();
    if !build_script_linking::is_native_glibc() {
        return;
    }
    if build_script_linking::reads_packed_relocations() {
        println!("cargo::rustc-link-arg-bins={}", build_script_linking::PACK_RELOCATIONS);
    }
    build_script_linking::link_unwinder();
}

fn define_linux_calls() {
    println!("cargo::rustc-check-cfg=cfg(linux_calls)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_PORTABLE").is_none() {
        println!("cargo::rustc-cfg=linux_calls");
    }
}

//! Sets the SONAME of the shared library, by which programs find it. The SONAME changes when the
//! interface changes incompatibly.
//!
//! Links the unwinder statically into the library if the C compiler has it as an archive, and packs
//! the relocations if the C library reads packed ones, as for the program `haul`
//! (docs/design/startup.md).

mod build_script_linking;

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build_script_linking.rs");
    let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libhaul.{major}.dylib"),
        Ok("windows") => {}
        _ => println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhaul.so.{major}"),
    }
    if !build_script_linking::is_native_glibc() {
        return;
    }
    if build_script_linking::reads_packed_relocations() {
        println!("cargo::rustc-cdylib-link-arg={}", build_script_linking::PACK_RELOCATIONS);
    }
    build_script_linking::link_unwinder();
}

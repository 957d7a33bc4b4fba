//! Sets the SONAME of the shared library, by which programs find it. The SONAME changes when the
//! interface changes incompatibly.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libhaul.{major}.dylib"),
        Ok("windows") => {}
        _ => println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhaul.so.{major}"),
    }
}

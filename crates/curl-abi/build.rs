//! Compiles the functions with variable arguments (`src/variadic.c`), which stable Rust cannot
//! define.

fn main() {
    println!("cargo::rerun-if-changed=src/variadic.c");
    cc::Build::new()
        .file("src/variadic.c")
        .flag_if_supported("-std=c11")
        .define("_GNU_SOURCE", None)
        .warnings(true)
        .extra_warnings(true)
        .compile("haul_curl_variadic");
}

#!/bin/sh
# Runs the C interface under memory checkers: its test programs and examples, and the programs written for libcurl, under valgrind
# (errors and leaks) and with AddressSanitizer (with its leak check), and threads that share connections and a cookie jar with ThreadSanitizer, for which haul
# and Rust's standard library are rebuilt. Missing tools are skipped. helgrind and DRD are not used: they know neither futexes, which
# Rust's locks use, nor atomics, and report only those.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

if command -v valgrind >/dev/null 2>&1; then
    echo "== valgrind"
    checks="valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes"
    # ring's assembler leaves parts of a key's table unset and unused, and valgrind takes what is computed beside them for unset, too.
    tls_checks="$checks --undef-value-errors=no"
    HAUL_C_WRAPPER=$checks HAUL_C_ROUNDS=20 \
        "$cargo" test -p httphaul-capi --test c_programs --test examples --test costs -- --nocapture --test-threads=1 \
        --skip memory_does_not_grow_with_requests --skip http3_ --skip tls_
    HAUL_C_WRAPPER=$tls_checks "$cargo" test -p httphaul-capi --test c_programs -- --nocapture --test-threads=1 http3_ tls_
    HAUL_C_WRAPPER=$checks "$cargo" test -p httphaul-curl --test c_programs -- --nocapture --test-threads=1 --skip tls_options
    HAUL_C_WRAPPER=$tls_checks "$cargo" test -p httphaul-curl --test c_programs -- --nocapture --test-threads=1 tls_options
else
    echo "valgrind is not installed: passed over"
fi
echo "== AddressSanitizer"
HAUL_C_FLAGS="-fsanitize=address" \
    "$cargo" test -p httphaul-capi --test c_programs --test examples --test costs -- --nocapture --test-threads=1 --skip memory_does_not_grow_with_requests
HAUL_C_FLAGS="-fsanitize=address" "$cargo" test -p httphaul-curl --test c_programs -- --nocapture --test-threads=1
echo "== ThreadSanitizer"
sysroot=$(rustc +nightly --print sysroot 2>/dev/null || true)
host=$(rustc -vV | sed -n 's/^host: //p')
runtime=$sysroot/lib/rustlib/$host/lib/librustc-nightly_rt.tsan.a
if [ -n "$sysroot" ] && [ -d "$sysroot/lib/rustlib/src/rust" ] && [ -f "$runtime" ]; then
    # The C program contains the runtime, which sees the locks, threads and memory of both sides.
    HAUL_C_FLAGS="-Wl,--whole-archive $runtime -Wl,--no-whole-archive -Wl,--export-dynamic -ldl -lm -lrt" \
        RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="exitcode=66" \
        "$cargo" +nightly test -Zbuild-std --target "$host" -p httphaul-capi --test costs -- --nocapture threads_share
else
    echo "no nightly toolchain with its sources (rustup toolchain install nightly -c rust-src): passed over"
fi

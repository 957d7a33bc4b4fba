#!/bin/sh
# Runs unit tests in Miri, which checks each memory access, but has no sockets and no foreign code: those of the C interface, and those
# of the pure parsers, whose dependencies (httparse, memchr) contain unsafe code. Tests that count much work are left out, because Miri
# is some hundred times slower.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
if ! "$cargo" +nightly miri --version >/dev/null 2>&1; then
    echo "miri: needs a nightly toolchain with Miri (rustup toolchain install nightly --profile minimal -c miri -c rust-src)" >&2
    exit 1
fi
# The tests may use the clock and the environment.
export MIRIFLAGS="-Zmiri-disable-isolation"
target=${CARGO_TARGET_DIR:-target}/miri
"$cargo" +nightly miri test --target-dir "$target" -p httphaul-capi --lib
"$cargo" +nightly miri test --target-dir "$target" -p httphaul-proto --lib -- --skip takes_linear_time --skip every_byte_survives

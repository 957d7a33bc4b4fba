#!/bin/sh
# What of haul runs in Miri, which looks at each access to memory but has neither sockets nor foreign code: the unit tests of
# the C interface (what C hands over, reads and frees), and those of the pure parsers, which have no unsafe code themselves
# but stand on some (httparse, memchr). Left out is what counts work by doing much of it: Miri is some hundred times as slow.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
if ! "$cargo" +nightly miri --version >/dev/null 2>&1; then
    echo "miri: needs a nightly toolchain with Miri (rustup toolchain install nightly --profile minimal -c miri -c rust-src)" >&2
    exit 1
fi
# Neither the clock nor the environment is taken from the tests.
export MIRIFLAGS="-Zmiri-disable-isolation"
target=${CARGO_TARGET_DIR:-target}/miri
"$cargo" +nightly miri test --target-dir "$target" -p httphaul-capi --lib
"$cargo" +nightly miri test --target-dir "$target" -p httphaul-proto --lib -- --skip linear_work --skip every_byte_survives

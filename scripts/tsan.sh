#!/bin/sh
# The engine's tests of threads under ThreadSanitizer, with Rust's own library built for it: workers, batches, the futures'
# thread, shared connections, jars and passwords; and its models, HAUL_MODELS=100 seeds of each.
#
# tokio is the test server's: that epoll hands a socket from one of its threads to another is nothing that the sanitizer sees.
# Tests that measure rates are left out, for all is ten times as slow.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
sysroot=$(rustc +nightly --print sysroot 2>/dev/null || true)
if ! [ -d "$sysroot/lib/rustlib/src/rust" ]; then
    echo "tsan: needs a nightly toolchain with its sources (rustup toolchain install nightly --profile minimal -c rust-src)" >&2
    exit 1
fi
host=$(rustc -vV | sed -n 's/^host: //p')
suppressions=$(mktemp)
trap 'rm -f "$suppressions"' EXIT
echo "race:tokio::runtime" >"$suppressions"
modules="api_async:: error_classification:: streamed_uploads:: fleet_ h2_coalescing:: splice_bodies:: resume:: secrets_via_proxies:: body_transfers_under_random_faults:: session_model::"
tsan() {
    HAUL_MODELS=${HAUL_MODELS:-100} RUSTFLAGS="-Zsanitizer=thread" \
        TSAN_OPTIONS="exitcode=66 history_size=4 suppressions=$suppressions" \
        "$cargo" +nightly test -Zbuild-std --target "$host" --target-dir "${CARGO_TARGET_DIR:-target}/tsan" -p httphaul "$@"
}
tsan --test api_batch --test cookies_hsts_alt_svc
# shellcheck disable=SC2086 # one filter a word
tsan --test suite -- $modules

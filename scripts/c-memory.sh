#!/bin/sh
# The C interface under tools that look at memory: its test programs and examples once under valgrind (errors and leaks), once
# with AddressSanitizer and its leak check. What is not installed is passed over. (helgrind and DRD know neither futexes, which
# Rust's locks are, nor atomics: each of their reports here is of those.)
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

if command -v valgrind >/dev/null 2>&1; then
    echo "== valgrind"
    HAUL_C_WRAPPER="valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes" \
        HAUL_C_ROUNDS=20 \
        "$cargo" test -p haul-capi --test programs --test examples --test costs -- --nocapture --test-threads=1 --skip memory_stays_flat
else
    echo "valgrind is not installed: passed over"
fi
echo "== AddressSanitizer"
HAUL_C_FLAGS="-fsanitize=address" \
    "$cargo" test -p haul-capi --test programs --test examples --test costs -- --nocapture --test-threads=1 --skip memory_stays_flat

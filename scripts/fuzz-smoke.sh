#!/bin/sh
# Runs each fuzz target for FUZZ_SECONDS=20, from its corpus and dictionary. New inputs go to a temporary copy of the corpus; a failing
# input is stored under fuzz/artifacts/.
#
# Works without cargo-fuzz: it passes the same flags, except the sanitizers, which code without `unsafe` does not need.
set -eu

cd "$(dirname "$0")/../fuzz"
cargo=${CARGO:-cargo}
if ! "$cargo" +nightly --version >/dev/null 2>&1; then
    echo "fuzz-smoke: needs a nightly toolchain (rustup toolchain install nightly --profile minimal)" >&2
    exit 1
fi
host=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-../target}/fuzz-nightly

RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Clink-dead-code -Ccodegen-units=1" \
    "$cargo" +nightly build --release --target "$host" --target-dir "$target"

seconds=${FUZZ_SECONDS:-20}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in fuzz_targets/*.rs; do
    name=$(basename "$source" .rs)
    mkdir -p "$work/$name" "artifacts/$name"
    [ ! -d "corpus/$name" ] || cp -R "corpus/$name/." "$work/$name/"
    set -- "-max_total_time=$seconds" "-artifact_prefix=artifacts/$name/" -print_final_stats=1 -verbosity=0
    dict="${name%%_*}.dict"
    [ ! -f "$dict" ] || set -- "$@" "-dict=$dict"
    if ! "$target/$host/release/$name" "$@" "$work/$name" >"$work/log" 2>&1; then
        tail -n 60 "$work/log" >&2
        echo "fuzz-smoke: $name failed; its input is in fuzz/artifacts/$name/" >&2
        exit 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
    echo "fuzz-smoke: $name, $seconds s, $runs runs, nothing found"
done

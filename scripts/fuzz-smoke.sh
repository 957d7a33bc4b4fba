#!/bin/sh
# Each fuzz target for a while (SECONDS=20), from its corpus and dictionary. What it finds new goes to a copy of the
# corpus that is thrown away; an input that fails is kept under fuzz/artifacts/.
#
# It does without cargo-fuzz: these are the flags that it passes, but for the sanitizers, which code without `unsafe`
# does not need.
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

corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
for source in fuzz_targets/*.rs; do
    name=$(basename "$source" .rs)
    echo "== $name, ${SECONDS:-20} s"
    mkdir -p "$corpus/$name" "artifacts/$name"
    [ ! -d "corpus/$name" ] || cp -R "corpus/$name/." "$corpus/$name/"
    dict="${name%%_*}.dict"
    [ ! -f "$dict" ] || set -- "-dict=$dict"
    "$target/$host/release/$name" "$@" -max_total_time="${SECONDS:-20}" -artifact_prefix="artifacts/$name/" \
        -print_final_stats=1 -verbosity=0 "$corpus/$name"
    set --
done

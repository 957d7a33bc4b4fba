#!/bin/sh
# Runs each fuzz target for FUZZ_SECONDS=20 or FUZZ_MINUTES, from its corpus and dictionary; FUZZ_TARGETS names some of them. New inputs
# go to a temporary copy of the corpus; a failing input is stored under fuzz/artifacts/. With FUZZ_RESULT=FILE, the figures of each target
# (executions, edges, new units) are added to FILE, a JSON object a line.
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
bins=
for name in ${FUZZ_TARGETS:-}; do
    bins="$bins --bin $name"
done

# shellcheck disable=SC2086 # one word each
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Clink-dead-code -Ccodegen-units=1" \
    "$cargo" +nightly build --release --target "$host" --target-dir "$target" ${bins:---bins}

seconds=${FUZZ_SECONDS:-20}
[ -z "${FUZZ_MINUTES:-}" ] || seconds=$((FUZZ_MINUTES * 60))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=
for source in fuzz_targets/*.rs; do
    name=$(basename "$source" .rs)
    case " ${FUZZ_TARGETS:-$name} " in *" $name "*) ;; *) continue ;; esac
    mkdir -p "$work/$name" "artifacts/$name"
    [ ! -d "corpus/$name" ] || cp -R "corpus/$name/." "$work/$name/"
    set -- "-max_total_time=$seconds" "-artifact_prefix=artifacts/$name/" -print_final_stats=1
    dict="${name%%_*}.dict"
    [ ! -f "$dict" ] || set -- "$@" "-dict=$dict"
    if ! "$target/$host/release/$name" "$@" "$work/$name" >"$work/log" 2>&1; then
        tail -n 60 "$work/log" >&2
        echo "fuzz-smoke: $name failed; its input is in fuzz/artifacts/$name/" >&2
        failed="$failed $name"
        continue
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
    units=$(sed -n 's/^stat::new_units_added: *//p' "$work/log")
    edges=$(sed -n 's/^#[0-9]*[[:space:]]*DONE *cov: \([0-9]*\) .*/\1/p' "$work/log")
    echo "fuzz-smoke: $name, $seconds s, $runs runs, $edges edges, $units new units, nothing found"
    [ -z "${FUZZ_RESULT:-}" ] ||
        printf '{"target":"%s","date":"%s","seconds":%s,"executions":%s,"edges":%s,"new_units":%s}\n' \
            "$name" "$(date +%F)" "$seconds" "${runs:-0}" "${edges:-0}" "${units:-0}" >>"$FUZZ_RESULT"
done
if [ -n "$failed" ]; then
    echo "fuzz-smoke: failed:$failed" >&2
    exit 1
fi

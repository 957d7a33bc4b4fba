#!/bin/sh
# Lines, regions and branches of the crates proto and policy that their own tests run: scripts/coverage.sh [CRATE...].
# Prints the totals, and writes the lines and branches that never run to target/coverage/CRATE.missed, and all files as
# HTML. Needs a nightly toolchain with llvm-tools, for branches.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
sysroot=$(rustc +nightly --print sysroot 2>/dev/null || true)
host=$(rustc -vV | sed -n 's/^host: //p')
tools=$sysroot/lib/rustlib/$host/bin
if ! [ -x "$tools/llvm-cov" ]; then
    echo "coverage: needs a nightly toolchain with llvm-tools (rustup toolchain install nightly --profile minimal -c llvm-tools)" >&2
    exit 1
fi
mkdir -p "${CARGO_TARGET_DIR:-target}/coverage"
out=$(cd "${CARGO_TARGET_DIR:-target}/coverage" && pwd)
[ $# -gt 0 ] || set -- proto policy

for crate in "$@"; do
    rm -rf "$out/$crate.profiles"
    # The names of the test binaries are in cargo's messages.
    RUSTFLAGS="-Cinstrument-coverage -Zcoverage-options=branch" LLVM_PROFILE_FILE="$out/$crate.profiles/build-%p.profraw" \
        "$cargo" +nightly test --no-run --message-format=json --target-dir "$out/build" \
        -p "httphaul-$crate" --lib --tests |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' >"$out/$crate.binaries"
    rm -rf "$out/$crate.profiles"
    while read -r binary; do
        (cd "crates/$crate" && LLVM_PROFILE_FILE="$out/$crate.profiles/%m-%p.profraw" "$binary" --quiet >"$out/log" 2>&1) ||
            { tail -n 20 "$out/log" >&2; exit 1; }
    done <"$out/$crate.binaries"
    "$tools/llvm-profdata" merge -sparse -o "$out/$crate.profdata" "$out/$crate.profiles"/*.profraw
    objects=$(sed '2,$s/^/--object /' "$out/$crate.binaries")
    cov() {
        kind=$1
        shift
        # shellcheck disable=SC2086 # one word each
        "$tools/llvm-cov" "$kind" $objects -instr-profile "$out/$crate.profdata" \
            --ignore-filename-regex '/(tests|registry|library|rustc)/|/tests?\.rs$' "$@" "crates/$crate/src"
    }
    cov report --summary-only >"$out/$crate.report"
    cov export --format=text >"$out/$crate.json"
    cov show --format=html --show-branches=count --output-dir "$out/$crate.html" >/dev/null
    python3 scripts/coverage.py "$crate" "$out/$crate.json" "$out/$crate.missed"
done

#!/bin/sh
# Checks the engine and the command with and without their optional parts (Cargo features). Warnings are errors.
set -eu

cd "$(dirname "$0")/.."
check() {
    package=$1
    shift
    for features; do
        echo "check-features: $package, features: ${features:-none}"
        "${CARGO:-cargo}" clippy ${LOCKED:-} -q -p "$package" --no-default-features --features "$features" -- -D warnings
    done
}

check httphaul "" json select http3 http negotiate
check httphaul-cli "" http3 job negotiate select warc

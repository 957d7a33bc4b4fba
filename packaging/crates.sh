#!/bin/sh
# The crates as `cargo publish` would upload them, not compiled again.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh

crates='httphaul-proto httphaul-policy httphaul httphaul-cli httphaul-capi'
packages=
for crate in $crates; do
    packages="$packages -p $crate"
done
target=$BUILD/crates
# shellcheck disable=SC2086 # a list of arguments
"$CARGO" package --quiet --locked --no-verify --allow-dirty --target-dir "$target" $packages
for crate in $crates; do
    archive=$target/package/$crate-$VERSION.crate
    for file in README.md LICENSE-MIT LICENSE-APACHE; do
        tar -tzf "$archive" | grep -qx "$crate-$VERSION/$file" || {
            echo "dist: $crate has no $file" >&2
            exit 1
        }
    done
    cp "$archive" "$DIST"
done

#!/bin/sh
# Counts the blocks, functions, traits and implementations with `unsafe` in the sources of the direct dependencies, and in haul's
# own crates (docs/design/dependencies.md). It reads Cargo.lock, the manifests, and the sources that Cargo has downloaded; it
# builds nothing. Comments and the directories of tests, benchmarks and examples are left out. Declarations of foreign functions
# without the word are not counted.
#
#   scripts/unsafe-counts.sh         a line for each: name, version, count, licence
set -eu

cd "$(dirname "$0")/.."
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src

# Prints the number of uses of `unsafe` in the Rust files below a directory.
count() {
    find "$1" -name '*.rs' ! -path "$1/tests/*" ! -path "$1/benches/*" ! -path "$1/examples/*" -exec cat {} + |
        sed 's,//.*,,' | grep -oE '(^|[^A-Za-z0-9_])unsafe[[:space:]]*(\{|fn|impl|extern|trait)' | wc -l | tr -d ' '
}

# Prints the packages in the dependency tables of a manifest, without those of the workspace and of tests.
direct() {
    awk '
        /^\[/ { reads = /dependencies\]$/ && !/dev-dependencies\]$/; next }
        reads && match($0, /^[A-Za-z0-9_-]+/) {
            name = substr($0, 1, RLENGTH)
            if (match($0, /package = "[^"]+"/)) name = substr($0, RSTART + 11, RLENGTH - 12)
            if (name !~ /^(haul|httphaul)/) print name
        }' "$1"
}

for manifest in crates/*/Cargo.toml bindings/python/Cargo.toml; do
    direct "$manifest"
done | sort -u | while read -r name; do
    # The newest of several versions is the direct dependency; others are dependencies of dependencies.
    version=$(awk -v name="$name" '
        $1 == "name" { found = $3 == "\"" name "\"" }
        found && $1 == "version" { gsub(/"/, "", $3); print $3 }' Cargo.lock | sort -V | tail -n 1)
    for directory in "$sources"/*/"$name-$version"; do
        if [ ! -d "$directory" ]; then
            echo "$name $version: not downloaded; 'cargo fetch --locked' fetches it" >&2
            continue
        fi
        licence=$(sed -n 's/^license = "\(.*\)"/\1/p' "$directory/Cargo.toml")
        printf '%-22s %-9s %6d  %s\n' "$name" "$version" "$(count "$directory")" "$licence"
    done
done
for crate in crates/* bindings/python; do
    printf '%-22s %-9s %6d\n' "$crate" - "$(count "$crate")"
done

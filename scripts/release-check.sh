#!/bin/sh
# Checks what has to be true of a commit before it is tagged as a release: one version everywhere, dated change logs, lock files
# that match, a clean tree, and the packages in dist/ if there are any. Prints a line for each thing that is not so.
#
# What takes tests or a network is in .github/RELEASE_CHECKLIST.md.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
exact=$(printf '%s' "$version" | sed 's/\./\\./g')
failed=
fail() {
    failed=yes
    echo "release-check: $*" >&2
}

sed -n 's/^haul[a-z-]* = .*version = "\([^"]*\)".*/\1/p' Cargo.toml | grep -qvx "$exact" &&
    fail "Cargo.toml asks for another version of a crate of its own than $version"
# A file with more of another module's package, such as RequestInPerl.pm, has the version of that module.
find bindings/perl/lib -name '*.pm' | sort | while read -r module; do
    name=$(printf '%s' "${module#bindings/perl/lib/}" | sed -e 's|/|::|g' -e 's/\.pm$//')
    package=$(sed -n 's/^package \([A-Za-z0-9_:]*\);.*/\1/p' "$module" | head -n 1)
    [ "$package" = "$name" ] || [ ! -e "bindings/perl/lib/$(printf '%s' "$package" | sed 's|::|/|g').pm" ] || continue
    grep -q "^our \$VERSION = '$exact';" "$module" || echo "$module"
done | {
    ! grep .
} || fail "these modules have no \$VERSION = '$version'"

grep -qE "^## \[$exact\] - 20[0-9]{2}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || fail "CHANGELOG.md has no line '## [$version] - DATE'"
grep -qE "^$exact +20[0-9]{2}-[0-9]{2}-[0-9]{2}$" bindings/perl/Changes || fail "bindings/perl/Changes has no line '$version DATE'"

for manifest in Cargo.toml fuzz/Cargo.toml bench/libcurl/Cargo.toml; do
    "$cargo" metadata --locked --format-version 1 --manifest-path "$manifest" >/dev/null 2>&1 ||
        fail "the lock file of $manifest does not match it"
done
if "$cargo" deny --version >/dev/null 2>&1; then
    "$cargo" deny --log-level error check || fail "cargo deny check"
else
    echo "release-check: left out, because cargo-deny is missing: cargo deny check"
fi

[ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed"
[ -z "$(git tag --list "v$version")" ] || fail "the tag v$version is there already"
if [ -e dist/SHA256SUMS ]; then
    (cd dist && sha256sum --check --quiet SHA256SUMS) || fail "dist/SHA256SUMS does not match the packages"
    [ "$(find dist -name "*$version*" | wc -l)" -gt 0 ] || fail "dist/ has no packages of $version"
else
    echo "release-check: left out, because nothing is in dist/: the sums of packages"
fi

[ -z "$failed" ] || exit 1
echo "release-check: $version can be tagged"

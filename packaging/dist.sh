#!/bin/sh
# Makes the packages of haul in dist/, with SHA256SUMS and an SBOM, and checks that they can be made again with the same bytes.
#
#   make dist                              everything
#   make dist PARTS="tarball deb"          some parts; SHA256SUMS is of what is in dist/
#   make dist ARCHES="x86_64 aarch64"      for other processors as well
#   make dist REBUILD=1                    compiles again, from a copy of the sources in another directory, and compares
#
# Without REBUILD only what follows the compiler is repeated. docs/packaging.md describes the parts and what each of them needs.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
PARTS=${PARTS:-source tarball deb rpm wheel cpan crates ports}

make_parts() {
    mkdir -p "$DIST" "$BUILD"
    python3 packaging/dependencies.py notices >"$BUILD/NOTICES"
    for part in $PARTS; do
        echo "dist: $part"
        sh "packaging/$part.sh"
    done
    python3 packaging/dependencies.py sbom >"$DIST/haul-$VERSION.cdx.json"
    (cd "$DIST" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
}

make_parts
[ -z "${AGAIN:-}" ] || exit 0

again=$(fresh again)
if [ -n "${REBUILD:-}" ]; then
    # Another root directory and another target directory: their names must not be in the packages.
    # A clone, because the archives of crates name the commit.
    git clone --quiet --shared . "$again/haul-sources"
    git ls-files -z | xargs -0 tar -cf - | tar -C "$again/haul-sources" -xf -
    (cd "$again/haul-sources" && AGAIN=1 DIST=$again/dist BUILD=$again/build PARTS=$PARTS sh packaging/dist.sh)
else
    AGAIN=1 DIST=$again/dist PARTS=$PARTS sh packaging/dist.sh >/dev/null
fi
differ=
for path in "$again"/dist/*; do
    name=${path##*/}
    [ "$name" = SHA256SUMS ] || cmp -s "$path" "$DIST/$name" || differ="$differ $name"
done
[ -z "$differ" ] || {
    echo "dist: not the same bytes when made again:$differ (compare with $again/dist)" >&2
    exit 1
}
rm -rf "$again"
echo "dist: made twice with the same bytes"
cat "$DIST/SHA256SUMS"

#!/bin/sh
# The source tarball, for ports and distributions: the files that git tracks.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
work=$(fresh source)
mkdir "$work/haul-$VERSION"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1 && [ -e .git ]; then
    git ls-files -z | xargs -0 tar -cf - | tar -C "$work/haul-$VERSION" -xf -
else
    tar -cf - --exclude=./dist --exclude=./target --exclude=./.git . | tar -C "$work/haul-$VERSION" -xf -
fi
pack "$work" "haul-$VERSION" "$DIST/haul-$VERSION.tar.gz"

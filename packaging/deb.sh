#!/bin/sh
# Debian packages by debhelper: haul, libhaul0, libhaul-dev. `lintian` must have nothing to say about them.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
command -v dh >/dev/null || {
    echo "dist: debhelper is missing (apt-get install debhelper lintian)" >&2
    exit 1
}
. packaging/native.sh

work=$(fresh deb)
tree=$work/haul-$VERSION
mkdir "$tree"
cp -R packaging/debian "$tree/debian"
cat >"$tree/debian/changelog" <<END
haul ($VERSION-1) unstable; urgency=medium

  * Release $VERSION: CHANGELOG.md names the changes.

 -- The haul authors <haul@users.noreply.github.com>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
make -s install "BUILT=$NATIVE" "DESTDIR=$tree/built" PREFIX=/usr "LIBDIR=lib/$multiarch"
# Debian has these texts in copyright.
rm "$tree"/built/usr/share/doc/haul/LICENSE-*
install -m 644 "$BUILD/NOTICES" "$tree/built/usr/share/doc/haul/NOTICES"
(cd "$tree" && dpkg-buildpackage -b -uc -us -nc >"$work/log" 2>&1) || {
    cat "$work/log" >&2
    exit 1
}
if command -v lintian >/dev/null; then
    # An upload to Debian would have to close the bug that asks for the package.
    lintian --fail-on error,warning --allow-root --suppress-tags initial-upload-closes-no-bugs "$work"/*.deb
else
    echo "dist: lintian is missing, so the Debian packages are not checked" >&2
fi
mv "$work"/*.deb "$DIST"

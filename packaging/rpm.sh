#!/bin/sh
# RPM packages by rpmbuild: haul, libhaul, libhaul-devel.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
command -v rpmbuild >/dev/null || {
    echo "dist: rpmbuild is missing (apt-get install rpm, dnf install rpm-build)" >&2
    exit 1
}
. packaging/native.sh

work=$(fresh rpm)
make -s install "BUILT=$NATIVE" "DESTDIR=$work/files" PREFIX=/usr LIBDIR=lib64
gzip -n -9 "$work"/files/usr/share/man/man?/*
mkdir -p "$work/files/usr/share/licenses/haul"
mv "$work"/files/usr/share/doc/haul/LICENSE-* "$work/files/usr/share/licenses/haul"
install -m 644 "$BUILD/NOTICES" "$work/files/usr/share/licenses/haul/NOTICES"
rpmbuild -bb --quiet --target "${HOST%%-*}" \
    --define "_topdir $work/top" --define "_rpmdir $work/rpms" --define "staged $work/files" \
    --define "version_of_haul $VERSION" --define '_buildhost localhost' \
    --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
    --define '_build_id_links none' --define 'source_date_epoch_from_changelog 0' \
    --define '_libdir /usr/lib64' --define '_defaultdocdir /usr/share/doc' packaging/rpm/haul.spec >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
}
find "$work/rpms" -name '*.rpm' -exec mv {} "$DIST" \;

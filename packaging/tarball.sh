#!/bin/sh
# A tarball for each processor, with a static binary that runs on any Linux. Its directories are those below /usr/local:
#
#   tar -xzf haul-VERSION-x86_64-linux-musl.tar.gz --strip-components=1 -C /usr/local
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
with_tools

for arch in $ARCHES; do
    with_target "$arch-unknown-linux-musl"
    (
        for_packages
        # zig links no static binary that is position-independent; Rust's own linker does for x86_64.
        RUSTFLAGS="$RUSTFLAGS -C linker=rust-lld"
        "$CARGO" zigbuild --locked --release --target "$arch-unknown-linux-musl" -p httphaul-cli --bin haul
    )
    name=haul-$VERSION-$arch-linux-musl
    work=$(fresh tarball)
    make -s install-command "BUILT=$BUILD/$arch-unknown-linux-musl/release" "DESTDIR=$work/$name" PREFIX=
    install -m 644 "$BUILD/NOTICES" "$work/$name/share/doc/haul/NOTICES"
    pack "$work" "$name" "$DIST/$name.tar.gz"
done

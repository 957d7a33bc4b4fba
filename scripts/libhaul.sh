#!/bin/sh
# Arranges libhaul as it is installed: include/haul.h, lib/libhaul.so with its links, lib/libhaul.a, lib/pkgconfig/haul.pc.
#
#   sh scripts/libhaul.sh BUILT ROOT PREFIX [LIBDIR]
#
# BUILT is Cargo's output directory (target/release), ROOT the destination, PREFIX the directory that haul.pc names: ROOT, unless the
# files are installed below a DESTDIR. LIBDIR is the name of the directory for libraries: lib.
set -eu

built=$1
root=$2
prefix=$3
lib=${4:-lib}
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
major=${version%%.*}

install -d "$root/include" "$root/$lib/pkgconfig"
install -m 644 crates/capi/include/haul.h "$root/include/haul.h"
install -m 644 "$built/libhaul_c.a" "$root/$lib/libhaul.a"
if [ "$(uname -s)" = Darwin ]; then
    install -m 755 "$built/libhaul_c.dylib" "$root/$lib/libhaul.$major.dylib"
    ln -sf "libhaul.$major.dylib" "$root/$lib/libhaul.dylib"
else
    install -m 755 "$built/libhaul_c.so" "$root/$lib/libhaul.so.$version"
    ln -sf "libhaul.so.$version" "$root/$lib/libhaul.so.$major"
    ln -sf "libhaul.so.$major" "$root/$lib/libhaul.so"
fi
# Removes debug information, which is four fifths of the size.
if command -v strip >/dev/null 2>&1 && [ "$(uname -s)" != Darwin ]; then
    strip -g "$root/$lib/libhaul.a" "$root/$lib/libhaul.so.$version"
fi
sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$lib|" -e "s|@VERSION@|$version|" crates/capi/haul.pc.in >"$root/$lib/pkgconfig/haul.pc"
chmod 644 "$root/$lib/pkgconfig/haul.pc"

#!/bin/sh
# Arranges libhaul as it is installed: include/haul.h and haul.hpp, lib/libhaul.so with its links, lib/libhaul.a,
# lib/pkgconfig/haul.pc, lib/cmake/haul.
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

install -d "$root/include" "$root/$lib/pkgconfig" "$root/$lib/cmake/haul"
install -m 644 crates/capi/include/haul.h crates/capi/include/haul.hpp "$root/include"
install -m 644 "$built/libhaul_c.a" "$root/$lib/libhaul.a"
if [ "$(uname -s)" = Darwin ]; then
    install -m 755 "$built/libhaul_c.dylib" "$root/$lib/libhaul.$major.dylib"
    ln -sf "libhaul.$major.dylib" "$root/$lib/libhaul.dylib"
    shared=libhaul.$major.dylib soname=@rpath/libhaul.$major.dylib
else
    install -m 755 "$built/libhaul_c.so" "$root/$lib/libhaul.so.$version"
    ln -sf "libhaul.so.$version" "$root/$lib/libhaul.so.$major"
    ln -sf "libhaul.so.$major" "$root/$lib/libhaul.so"
    shared=libhaul.so.$version soname=libhaul.so.$major
fi
# Removes debug information, which is four fifths of the size.
if command -v strip >/dev/null 2>&1 && [ "$(uname -s)" != Darwin ]; then
    strip -g "$root/$lib/libhaul.a" "$root/$lib/libhaul.so.$version"
fi
sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$lib|" -e "s|@VERSION@|$version|" crates/capi/haul.pc.in >"$root/$lib/pkgconfig/haul.pc"
chmod 644 "$root/$lib/pkgconfig/haul.pc"
# LIBDIR may have several parts (lib/x86_64-linux-gnu).
up=$(printf '%s' "$lib" | sed -e 's|/*$||' -e 's|[^/][^/]*|..|g')
minor=${version#*.}
for file in haul-config haul-config-version; do
    sed -e "s|@UP@|$up|" -e "s|@SHARED@|$shared|" -e "s|@SONAME@|$soname|" -e "s|@VERSION@|$version|" -e "s|@MAJOR@|$major|" \
        -e "s|@MINOR@|${minor%%.*}|" "crates/capi/$file.cmake.in" >"$root/$lib/cmake/haul/$file.cmake"
    chmod 644 "$root/$lib/cmake/haul/$file.cmake"
done

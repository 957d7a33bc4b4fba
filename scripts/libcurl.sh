#!/bin/sh
# Links libcurl.so.4 and libcurl-gnutls.so.4 from the static library of crates/curl-abi. Each has the soname and the symbol versions of
# Debian's library with that name.
#
#   sh scripts/libcurl.sh ARCHIVE DIRECTORY
#
# ARCHIVE is the static library that Cargo has built (libhaul_curl.a). DIRECTORY receives the libraries and their links. A program finds
# them by LD_LIBRARY_PATH=DIRECTORY.
set -eu

archive=$1
directory=$2
cd "$(dirname "$0")/.."
map=crates/curl-abi/libcurl.map

mkdir -p "$directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The linker keeps what the exported functions use, and nothing else.
undefined=$(sed -n 's/^    \(curl_[a-z0-9_]*\);$/-Wl,-u,\1/p' "$map")

# link NAME VERSION TLS: links the library NAME.so.4 with this version node; curl_version_info names TLS as its TLS library.
link() {
    library=$directory/$1.so.4.8.0
    new=$library.$$
    sed "s/^CURL_OPENSSL_4 /$2 /" "$map" >"$work/map"
    # Replaces the weak definition in variadic.c.
    echo "extern const char haul_curl_tls_name[]; const char haul_curl_tls_name[] = \"$3/0 (rustls)\";" |
        ${CC:-cc} -fPIC -c -x c -o "$work/tls_name.o" -
    # shellcheck disable=SC2086 # a list of options
    ${CC:-cc} -shared -o "$new" "$work/tls_name.o" $undefined "$archive" \
        -Wl,-soname,"$1.so.4" -Wl,--version-script="$work/map" -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--no-undefined \
        -lgcc_s -lpthread -lm -ldl -lc
    if [ -z "${KEEP_DEBUG:-}" ] && command -v strip >/dev/null 2>&1; then
        strip -g "$new"
    fi
    mv "$new" "$library"
    ln -sf "$1.so.4.8.0" "$directory/$1.so.4"
    ln -sf "$1.so.4" "$directory/$1.so"
}

link libcurl CURL_OPENSSL_4 OpenSSL
link libcurl-gnutls CURL_GNUTLS_3 GnuTLS
# Programs of old releases of Debian.
ln -sf libcurl-gnutls.so.4 "$directory/libcurl-gnutls.so.3"

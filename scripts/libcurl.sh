#!/bin/sh
# Links libcurl.so.4 from the static library of crates/curl-abi, with libcurl's soname and symbol versions.
#
#   sh scripts/libcurl.sh ARCHIVE DIRECTORY
#
# ARCHIVE is the static library that Cargo has built (libhaul_curl.a). DIRECTORY receives libcurl.so.4.8.0 and its links. A program
# finds it by LD_LIBRARY_PATH=DIRECTORY.
set -eu

archive=$1
directory=$2
cd "$(dirname "$0")/.."
map=crates/curl-abi/libcurl.map

mkdir -p "$directory"
library=$directory/libcurl.so.4.8.0
new=$library.$$
# The linker keeps what the exported functions use, and nothing else.
undefined=$(sed -n 's/^    \(curl_[a-z0-9_]*\);$/-Wl,-u,\1/p' "$map")
# shellcheck disable=SC2086 # a list of options
${CC:-cc} -shared -o "$new" $undefined "$archive" \
    -Wl,-soname,libcurl.so.4 -Wl,--version-script="$map" -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--no-undefined \
    -lgcc_s -lpthread -lm -ldl -lc
if [ -z "${KEEP_DEBUG:-}" ] && command -v strip >/dev/null 2>&1; then
    strip -g "$new"
fi
mv "$new" "$library"
ln -sf libcurl.so.4.8.0 "$directory/libcurl.so.4"
ln -sf libcurl.so.4 "$directory/libcurl.so"

#!/bin/sh
# Builds what the job libcurl compares haul's library with, in target/libcurl-peers: the shared libcurl of the version that
# bench/libcurl/Cargo.lock names, from the sources in its crate (needs CMake and the headers of OpenSSL and nghttp2), under the names of
# both of Debian's libraries, and an environment for Python with pycurl, compiled against the header of the system's libcurl.
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
peers=$(mkdir -p "$target/libcurl-peers" && cd "$target/libcurl-peers" && pwd)

manifest=$("${CARGO:-cargo}" metadata --locked --format-version 1 --manifest-path bench/libcurl/Cargo.toml 2>/dev/null |
    grep -o '"manifest_path":"[^"]*/curl-sys-[^"]*/Cargo.toml"' | head -n 1 | cut -d '"' -f 4)
[ -f "${manifest%/*}/curl/CMakeLists.txt" ] || { echo "bench-libcurl: the crate curl-sys is not there" >&2; exit 1; }
# The crate does not contain curl's documents and tests; the build needs the directories.
rm -rf "$peers/src" "$peers/build" "$peers/lib"
cp -R "${manifest%/*}/curl" "$peers/src"
mkdir -p "$peers/src/docs" "$peers/lib"
[ -f "$peers/src/docs/CMakeLists.txt" ] || : >"$peers/src/docs/CMakeLists.txt"
cmake -S "$peers/src" -B "$peers/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 -DBUILD_SHARED_LIBS=ON \
    -DBUILD_STATIC_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF -DBUILD_LIBCURL_DOCS=OFF \
    -DBUILD_MISC_DOCS=OFF -DENABLE_CURL_MANUAL=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF -DUSE_LIBIDN2=OFF \
    -DCURL_DISABLE_LDAP=ON -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF -DUSE_NGHTTP2=ON >"$peers/log" 2>&1 &&
    cmake --build "$peers/build" --parallel 2 >>"$peers/log" 2>&1 ||
    { echo "bench-libcurl: libcurl does not build: $peers/log" >&2; exit 1; }
cp "$(find "$peers/build/lib" -name 'libcurl.so.4.*' -type f)" "$peers/lib/libcurl.so.4"
ln -s libcurl.so.4 "$peers/lib/libcurl-gnutls.so.4"

python3 -m venv "$peers/python"
# The packages on PyPI contain another libcurl.
# shellcheck disable=SC2046 # words
"$peers/python/bin/python" -m pip --disable-pip-version-check --quiet install \
    $(grep '^setuptools\|^wheel' scripts/libcurl-suites/requirements.txt)
PYCURL_SSL_LIBRARY=openssl "$peers/python/bin/python" -m pip --disable-pip-version-check --quiet install --no-binary pycurl \
    --no-build-isolation "$(grep '^pycurl' bench/python/requirements.txt)"
LD_LIBRARY_PATH=$peers/lib "$peers/python/bin/python" -c 'import pycurl; print("bench-libcurl:", pycurl.version)'

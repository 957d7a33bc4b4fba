#!/bin/sh
# Builds the peers of the scorecard that no package manager has, into the directory where the bench looks for programs first:
#
#   curl      the command, in the same version as the library of easyget, from the sources in the same crate (needs CMake and the
#             headers of OpenSSL and nghttp2); otherwise the bench measures the system's curl
#   easyget   bench/libcurl, with the libcurl that its Cargo.lock names, linked statically (needs a C compiler; without OpenSSL's
#             headers, OpenSSL is built, too, which needs perl and takes minutes)
#   htcat     github.com/htcat/htcat, through the Go module proxy (needs Go)
#   gofetch   bench/go, a program with net/http and nothing else (needs Go)
#   quicgo-*  bench/go-http3, the server and a client of the job h3 (scripts/http3-peers.sh)
#
# aria2c, wget2 and h2load are taken from PATH. A peer that cannot be built is reported, and the bench does without it. Existing
# peers are not rebuilt; --again rebuilds them.
set -u

cd "$(dirname "$0")/.."
work=$PWD/bench/work
mkdir -p "$work/bin"
missing=0
skip() {
    echo "bench-peers: no $1: $2" >&2
    missing=1
}
lock=$(cat bench/libcurl/Cargo.lock bench/libcurl/Cargo.toml bench/libcurl/src/*.rs | cksum)
# Returns whether the peer was built from the same versions.
has() {
    [ "${again:-}" != --again ] && [ -x "$work/bin/$1" ] && [ "$(cat "$work/$1.lock" 2>/dev/null)" = "$lock" ]
}
again=${1:-}

features=
pkg-config --exists openssl 2>/dev/null || features=vendored
# A separate target directory, because the libraries have other features than haul's.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/peers
export CARGO_TARGET_DIR
if ! has easyget; then
    if "${CARGO:-cargo}" build --release --locked --manifest-path bench/libcurl/Cargo.toml --features "$features"; then
        cp "$CARGO_TARGET_DIR/release/easyget" "$work/bin/easyget" && echo "$lock" >"$work/easyget.lock"
    else
        skip easyget "it does not build (is there a C compiler?)"
    fi
fi

# The directory in which Cargo has unpacked the crate with curl's sources.
sources() {
    "${CARGO:-cargo}" metadata --locked --format-version 1 --manifest-path bench/libcurl/Cargo.toml 2>/dev/null |
        grep -o '"manifest_path":"[^"]*/curl-sys-[^"]*/Cargo.toml"' | head -n 1 | cut -d '"' -f 4
}
curl_command() {
    manifest=$(sources)
    [ -n "$manifest" ] && [ -f "${manifest%/*}/curl/src/tool_main.c" ] || return 1
    # The crate does not contain curl's documents and tests; the build needs the directories.
    tree=$CARGO_TARGET_DIR/curl
    rm -rf "$tree" && mkdir -p "$tree" && cp -R "${manifest%/*}/curl" "$tree/src" && mkdir -p "$tree/src/docs" || return 1
    [ -f "$tree/src/docs/CMakeLists.txt" ] || : >"$tree/src/docs/CMakeLists.txt"
    cmake -S "$tree/src" -B "$tree/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 -DBUILD_SHARED_LIBS=OFF \
        -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF -DBUILD_LIBCURL_DOCS=OFF -DBUILD_MISC_DOCS=OFF -DENABLE_CURL_MANUAL=OFF \
        -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF -DUSE_LIBIDN2=OFF -DCURL_DISABLE_LDAP=ON -DCURL_BROTLI=OFF \
        -DCURL_ZSTD=OFF -DUSE_NGHTTP2=ON -DCURL_COMPLETION_FISH=OFF -DCURL_COMPLETION_ZSH=OFF >"$tree/log" 2>&1 &&
        cmake --build "$tree/build" --parallel 2 >>"$tree/log" 2>&1 &&
        cp "$tree/build/src/curl" "$work/bin/curl" && echo "$lock" >"$work/curl.lock"
}
if has curl; then
    :
elif ! command -v cmake >/dev/null 2>&1; then
    skip "curl of the version of easyget" "CMake is not installed"
elif ! curl_command; then
    skip "curl of the version of easyget" "it does not build: $CARGO_TARGET_DIR/curl/log"
fi

if [ -x "$work/bin/htcat" ] && [ "$again" != --again ]; then
    :
elif ! command -v go >/dev/null 2>&1; then
    skip htcat "Go is not installed"
elif ! GOBIN=$work/bin go install github.com/htcat/htcat/cmd/htcat@latest; then
    skip htcat "go install failed"
fi

if ! command -v go >/dev/null 2>&1; then
    skip gofetch "Go is not installed"
elif ! (cd bench/go && go build -o "$work/bin/gofetch" .); then
    skip gofetch "go build failed"
fi

sh scripts/http3-peers.sh
for peer in quicgo-server quicgo-client; do
    [ -x "$work/bin/$peer" ] || missing=1
done

for peer in curl aria2c wget2 h2load; do
    command -v "$peer" >/dev/null 2>&1 || skip "$peer" "install it with the system's packages"
done
[ "$missing" -eq 0 ] || echo "bench-peers: the jobs run without what is missing, and say so" >&2
exit 0

#!/bin/sh
# The peers of the scorecard that no package manager brings, into bench/work/bin:
#
#   easyget   bench/libcurl: the libcurl that its Cargo.lock names, linked statically (a C compiler; OpenSSL's headers,
#             else OpenSSL is built along, which takes perl and minutes)
#   htcat     github.com/htcat/htcat through the Go module proxy (Go)
#
# curl, aria2c and wget2 are taken from PATH. What cannot be had is said and passed over; the bench does without it.
set -u

cd "$(dirname "$0")/.."
work=$PWD/bench/work
mkdir -p "$work/bin"
missing=0
skip() {
    echo "bench-peers: no $1: $2" >&2
    missing=1
}

features=
pkg-config --exists openssl 2>/dev/null || features=vendored
# Cargo's own target directory of this package: the libraries differ in features from haul's.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/peers
export CARGO_TARGET_DIR
if "${CARGO:-cargo}" build --release --locked --manifest-path bench/libcurl/Cargo.toml --features "$features"; then
    cp "$CARGO_TARGET_DIR/release/easyget" "$work/bin/easyget"
else
    skip easyget "it does not build (is there a C compiler?)"
fi

if ! command -v go >/dev/null 2>&1; then
    skip htcat "Go is not installed"
elif ! GOBIN=$work/bin go install github.com/htcat/htcat/cmd/htcat@latest; then
    skip htcat "go install failed"
fi

for peer in curl aria2c wget2; do
    command -v "$peer" >/dev/null 2>&1 || skip "$peer" "install it with the system's packages"
done
ls -l "$work/bin"
[ "$missing" -eq 0 ] || echo "bench-peers: the jobs run without what is missing, and say so" >&2

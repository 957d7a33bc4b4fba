#!/bin/sh
# Builds bench/go-http3, programs with quic-go, into bench/work/bin: quicgo-server, with which the tests of HTTP/3 and the job h3 of the
# bench run, quicgo-client, a peer in that job, and ech-server, a server with Encrypted Client Hello for the tests. Needs Go 1.26 or later, which Debian does not package yet, and the Go module proxy.
# Without them it says so in one line and does not fail.
set -u

cd "$(dirname "$0")/.."
command -v go >/dev/null 2>&1 || PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null 2>&1; then
    echo "http3-peers: no quicgo-server, quicgo-client and ech-server: Go is not installed" >&2
    exit 0
fi
mkdir -p bench/work/bin
# A toolchain of another version is not fetched: it would be larger than everything else that the tests need.
(cd bench/go-http3 && GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -o ../work/bin/ ./quicgo-server ./quicgo-client ./ech-server) ||
    echo "http3-peers: no quicgo-server, quicgo-client and ech-server: go build failed" >&2
exit 0

#!/bin/sh
# Installs the programs that the tests use besides the Rust toolchain: curl (to compare output), nginx, nghttpd, apache2 and caddy
# (servers, also of HTTP/2), strace (to count and refuse system calls), valgrind (to count instructions), faketime and script (clocks,
# terminals), tinyproxy, nghttpx, squid, Dante and microsocks (proxies), openssl (client keys), stunnel (TLS for
# scripts/curl-suite.sh), cc, c++, cmake, libuv and pkg-config (the C interface), Perl modules, apt-ftparchive, pacman with makepkg (for repo-
# add), bsdtar and signify (package managers), jq, sqlite3 and parallel (examples of the guides), chromium (the report of a job),
# python3-venv (the Python module). Where Go is installed, also builds a server with quic-go (scripts/http3-peers.sh).
#
#   sh scripts/setup-tests.sh            installs missing ones as root; otherwise prints the command
#   sh scripts/setup-tests.sh --missing  only lists missing ones, for the end of a run
#
# Tests that need a missing program skip themselves and print so. Never fails.
set -u

PATH=$PATH:/usr/sbin:/usr/local/sbin
export PATH

missing=
packages=
look() {
    if ! command -v "$1" >/dev/null 2>&1; then
        missing="$missing $1"
        packages="$packages $2"
    fi
}
look_perl() {
    if ! perl -M"$1" -e1 >/dev/null 2>&1; then
        missing="$missing $1"
        packages="$packages $2"
    fi
}
look_file() {
    if ! [ -e "$1" ]; then
        missing="$missing $1"
        packages="$packages $2"
    fi
}
look_all() {
    missing=
    packages=
    look curl curl
    look nginx nginx-light
    look nghttpd nghttp2-server
    look apache2 apache2-bin
    look caddy caddy
    look strace strace
    look faketime faketime
    look script bsdutils
    look tinyproxy tinyproxy-bin
    look nghttpx nghttp2-proxy
    look microsocks microsocks
    look squid squid-openssl
    look danted dante-server
    look openssl openssl
    look stunnel4 stunnel4
    look_perl ExtUtils::MakeMaker perl
    look_perl JSON::PP perl
    look_perl LWP::UserAgent libwww-perl
    look_perl HTTP::Daemon libhttp-daemon-perl
    look_perl HTTP::Cookies libhttp-cookies-perl
    look_perl HTTP::CookieJar libhttp-cookiejar-perl
    look_perl WWW::Mechanize libwww-mechanize-perl
    look_perl Mojolicious libmojolicious-perl
    look_perl Search::Elasticsearch libsearch-elasticsearch-perl
    # LWP's own suite (make lwp-suite) needs it.
    look_perl Test::RequiresInternet libtest-requiresinternet-perl
    look cc gcc
    look c++ g++
    look cmake cmake
    look_file /usr/include/uv.h libuv1-dev
    # The header of libcurl, against which the tests of crates/curl-abi compile programs.
    look curl-config libcurl4-openssl-dev
    look valgrind valgrind
    look pkg-config pkgconf
    look apt-ftparchive apt-utils
    look pacman pacman-package-manager
    look makepkg makepkg
    look bsdtar libarchive-tools
    look signify-openbsd signify-openbsd
    look setpriv util-linux
    look jq jq
    look sqlite3 sqlite3
    look parallel parallel
    look chromium "chromium fonts-dejavu-core"
    look python3 python3-minimal
    # Debian packages venv separately; another Python with venv works, too (scripts/test-python.sh).
    python3 -c 'import venv, ensurepip' 2>/dev/null || look python3-venv python3-venv
}

here=$(dirname "$0")
look_all
if [ "${1:-}" = --missing ]; then
    [ -x "$here/../bench/work/bin/quicgo-server" ] || missing="$missing quicgo-server"
    [ -z "$missing" ] || echo "not installed:$missing: the tests that need them were skipped"
    exit 0
fi
sh "$here/http3-peers.sh"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed:$missing. To run every test: sudo apt-get install$packages"
    exit 0
fi
echo "installing:$packages"
export DEBIAN_FRONTEND=noninteractive
# Keeps packages from starting services: the tests start their own servers.
export RUNLEVEL=1
# shellcheck disable=SC2086 # a list of packages
apt-get install -y -q --no-install-recommends $packages >/dev/null 2>&1 ||
    { apt-get update -q >/dev/null 2>&1 && apt-get install -y -q --no-install-recommends $packages >/dev/null 2>&1; }
look_all
[ -z "$missing" ] || echo "could not be installed:$packages; the tests that need them will be skipped"
exit 0

#!/bin/sh
# Installs the programs that the scorecard uses besides the Rust toolchain: servers, peers from Debian, and the build tools of the other
# peers. Without root it prints the command. Never fails: the bench leaves missing peers out.
set -u

PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/local/go/bin
export PATH

missing=
packages=
need() {
    missing="$missing $1"
    packages="$packages $2"
}
look() {
    command -v "$1" >/dev/null 2>&1 || need "$1" "$2"
}
look_perl() {
    perl -M"$1" -e1 >/dev/null 2>&1 || need "$1" "$2"
}
look_header() {
    pkg-config --exists "$1" 2>/dev/null || need "$1" "$2"
}
look_all() {
    missing=
    packages=
    look nginx nginx-light
    look curl curl
    look wget wget
    look wget2 wget2
    look aria2c aria2
    [ -s /etc/ssl/certs/ca-certificates.crt ] || need "the system's roots" ca-certificates
    look h2load nghttp2-client
    look strace strace
    look valgrind valgrind
    look taskset util-linux
    look cc gcc
    look cmake cmake
    look pkg-config pkg-config
    look_header openssl libssl-dev
    look_header libnghttp2 libnghttp2-dev
    look_header zlib zlib1g-dev
    look go golang-go
    look_perl ExtUtils::MakeMaker perl
    look_perl LWP::UserAgent libwww-perl
    look_perl HTTP::Tiny perl
    look_perl Furl libfurl-perl
    look_perl WWW::Curl::Easy libwww-curl-perl
    look_perl Hijk libhijk-perl
    look_perl Mojo::UserAgent libmojolicious-perl
    look_perl Search::Elasticsearch libsearch-elasticsearch-perl
    look python3 python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || need python3-venv python3-venv
}

look_all
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed:$missing. For every peer: sudo apt-get install$packages"
    exit 0
fi
echo "installing:$packages"
export DEBIAN_FRONTEND=noninteractive
# Keeps packages from starting services: the bench starts its own servers.
export RUNLEVEL=1
# One by one, because a missing package would make apt-get install none.
install() {
    for package in $packages; do
        apt-get install -y -q --no-install-recommends "$package" >/dev/null 2>&1
    done
}
install
look_all
if [ -n "$missing" ]; then
    apt-get update -q >/dev/null 2>&1
    install
    look_all
fi
[ -z "$missing" ] || echo "could not be installed:$packages; the scorecard does without"
exit 0

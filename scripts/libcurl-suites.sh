#!/bin/sh
# Runs test suites and programs that were written for libcurl, once over the system's libcurl and once over haul's.
#
#   sh scripts/libcurl-suites.sh                     the first four suites
#   sh scripts/libcurl-suites.sh libtests examples   these
#
#   pycurl     pycurl's tests, from its source package on PyPI, compiled against the system's libcurl
#   www-curl   the tests of Perl's WWW::Curl (libcurl-gnutls.so.4), from Debian's source package
#   php        the tests of PHP's curl extension, from Debian's source package
#   r          the tests of R's curl package, from Debian's source package
#   libtests   curl's own tests of libcurl, from Debian's source package, whose library takes the place of the system's
#   examples   the programs of curl's docs/examples, with the origin of testkit (`make tools`) and the same library
#
# A test counts if it passes over the system's libcurl. scripts/libcurl-suites/SUITE.expected lists those that do not pass over haul,
# with the reason: `scope` for tests of what the library does not have, `differs` for behaviour that differs on purpose. Fails if
# another test fails, or if a listed one passes. Needs `make libcurl`. A suite whose sources or programs are missing is skipped.
#
#   SUITE_DIR=DIR     a directory for sources, servers and results, which is kept (default: a temporary directory)
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
here=$top/scripts/libcurl-suites
target=${CARGO_TARGET_DIR:-$top/target}
library=$target/libcurl
[ -e "$library/libcurl.so.4" ] || { echo "libcurl.so.4 is not built: make libcurl"; exit 2; }
library=$(cd "$library" && pwd)
if [ -n "${SUITE_DIR:-}" ]; then
    mkdir -p "$SUITE_DIR"
    work=$(cd "$SUITE_DIR" && pwd)
else
    work=$(mktemp -d)
fi
servers=
# Ends the servers that this run started, and removes a temporary directory.
finish() {
    # shellcheck disable=SC2086 # words
    [ -z "$servers" ] || kill $servers 2>/dev/null
    [ -n "${SUITE_DIR:-}" ] || rm -rf "$work"
}
trap finish EXIT
unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY no_proxy NO_PROXY CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR
export top here library work

# source_of PACKAGE: prints the directory of a Debian source package, which is fetched once.
source_of() {
    if [ ! -f "$work/$1.source" ]; then
        sh "$top/scripts/debian-source.sh" "$1" "$work/sources/$1" >"$work/$1.source" || { rm -f "$work/$1.source"; return 1; }
    fi
    cat "$work/$1.source"
}

# python_packages: makes a virtual environment with the packages of requirements.txt.
python_packages() {
    [ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv" || return 1
    "$work/venv/bin/python" -m pip --disable-pip-version-check --quiet install --requirement "$here/requirements.txt"
}

# start_httpbin: starts httpbin on a free port of loopback, once. Sets httpbin to its URL.
start_httpbin() {
    [ -z "${httpbin:-}" ] || return 0
    python_packages || return 1
    "$work/venv/bin/gunicorn" --bind 127.0.0.1:0 --threads 8 --keep-alive 10 httpbin:app >"$work/httpbin.log" 2>&1 &
    servers="$servers $!"
    tries=100
    while [ $tries -gt 0 ]; do
        httpbin=$(sed -n 's/.*Listening at: \(http[^ ]*\).*/\1/p' "$work/httpbin.log")
        [ -z "$httpbin" ] || { export httpbin; return 0; }
        tries=$((tries - 1))
        sleep 0.2
    done
    return 1
}

failed=0
for suite in ${*:-pycurl www-curl php r}; do
    [ -f "$here/$suite.sh" ] || { echo "$suite: no such suite"; exit 2; }
    # Each file defines `prepare`, which fails with a reason on its output if something is missing, and `run LIBRARY`, which prints
    # `pass NAME`, `fail NAME` or `skip NAME` for each test. LIBRARY is a directory for LD_LIBRARY_PATH, or empty.
    # shellcheck disable=SC1090 # one of the files in $here
    . "$here/$suite.sh"
    prepare >"$work/$suite.reason" 2>&1 || { echo "$suite: skipped: $(tail -n 1 "$work/$suite.reason")"; continue; }
    run "" >"$work/$suite.system"
    run "$library" >"$work/$suite.haul"
    perl "$here/compare.pl" "$suite" "$work/$suite.system" "$work/$suite.haul" "$here/$suite.expected" || failed=1
done
exit "$failed"

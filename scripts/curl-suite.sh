#!/bin/sh
# Runs curl's own tests with haul instead of curl: the cases, servers and runner of Debian's source package, and every case that runs the
# command line against HTTP(S), a proxy, or no server.
#
#   sh scripts/curl-suite.sh                  all of them; prints the number that passed, and lists the failed cases
#   sh scripts/curl-suite.sh 1 to 100         arguments for the runner instead of the list: numbers, `A to B`, -p, -v, -j4
#
#   HAUL=PATH         the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR     the directory for source and servers, which is kept (default: a temporary directory)
#   SUITE_RELEASE=    the Debian release of the source (forky, which has curl 8.22; else trixie, bookworm)
#
# scripts/curl-suite/excluded lists cases that haul fails, most on purpose, with reasons. No file of curl is copied into this repository.
# Fails if another case fails. Prints so and succeeds if the source cannot be fetched.
set -u

. "$(dirname "$0")/curl-suite/paths.sh"

# The newest available Debian release has the curl version that haul replaces, or the nearest one.
source=$(find "$work" -maxdepth 1 -type d -name 'curl-[0-9]*' | head -n 1)
if [ -z "$source" ]; then
    source=$(curl_source 'forky trixie bookworm') || { echo "skipped: the source package of curl could not be fetched"; exit 0; }
fi
cd "$source" || exit 2

# Builds the test servers, and the program that prints curl's build options, but not curl. Features that haul does not have are
# disabled, so that the runner skips their cases. Newer releases have all servers in one program.
if [ ! -x tests/server/servers ] && [ ! -x tests/server/sws ]; then
    command -v cc >/dev/null 2>&1 || { echo "skipped: no C compiler for the servers"; exit 0; }
    {
        ./configure --quiet --disable-shared --without-ssl --without-libpsl --without-zlib --without-brotli --without-zstd \
            --without-nghttp2 --without-libidn2 --without-librtmp --without-libssh2 --disable-ldap --disable-ntlm \
            --disable-negotiate-auth --disable-kerberos-auth --disable-aws --disable-doh --disable-libcurl-option \
            --disable-docs --disable-manual &&
            make -s -C lib curl_config.h && make -s -C src curlinfo && make -s -C tests/server &&
            { ! command -v openssl >/dev/null || make -s -C tests/certs; }
    } > "$work/build.log" 2>&1 || { echo "skipped: curl's servers could not be built: $work/build.log"; exit 0; }
fi

# The runner tests Digest only if NTLM is enabled.
sed -i 's/|| $feature{"SPNEGO"};/|| 1;/' tests/runtests.pl

if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046 # words
    set -- $(perl "$top/scripts/curl-suite/cases.pl" tests/data)
fi

cd tests || exit 2
env -u http_proxy -u https_proxy -u HTTPS_PROXY -u no_proxy -u NO_PROXY -u ALL_PROXY -u all_proxy \
    perl runtests.pl -a -n -E "$top/scripts/curl-suite/excluded" -c "$work/bin/curl" -vc "$(command -v curl)" "$@" \
    > "$work/results" 2>&1
code=$?
# Logs that it prints (-p) may contain any bytes.
grep -aE '^TEST(DONE|FAIL|INFO)|FAILED' "$work/results" || tail -n 20 "$work/results"
echo "the whole of it: $work/results"
exit $code

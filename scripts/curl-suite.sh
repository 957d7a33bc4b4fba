#!/bin/sh
# curl's own tests with haul in curl's place: the test cases, servers and runner of curl's source package as Debian has it,
# every case that runs the command line against HTTP(S), a proxy, or no server at all.
#
#   sh scripts/curl-suite.sh                  all of them; says how many pass, and lists those that fail
#   sh scripts/curl-suite.sh 1 to 100         words for the runner in place of the list: numbers, `A to B`, -p, -v, -j4
#
#   HAUL=PATH         the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR     where source and servers are kept from one run to the next (a temporary directory otherwise)
#   SUITE_RELEASE=    the release of Debian to take the source from (forky, which has curl 8.22; else trixie, bookworm)
#
# Cases that haul fails, most by intention, stand in scripts/curl-suite/excluded with their reasons. Nothing of curl's comes into this
# repository. Fails when a case fails that is not in that list; passes, and says so, where the source cannot be fetched.
set -u

. "$(dirname "$0")/curl-suite/place.sh"

# The newest release of Debian that there is has the curl that haul takes the place of, or the nearest to it.
source=$(find "$work" -maxdepth 1 -type d -name 'curl-[0-9]*' | head -n 1)
if [ -z "$source" ]; then
    source=$(curl_source 'forky trixie bookworm') || { echo "skipped: the source package of curl could not be fetched"; exit 0; }
fi
cd "$source" || exit 2

# Its servers, and the little program that says what curl was built with; curl itself is never built. What haul has not is
# off here, so that the cases about it are passed over.
# Newer releases have all servers in one program.
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

# The runner infers from NTLM whether there is a Digest to be tested.
sed -i 's/|| $feature{"SPNEGO"};/|| 1;/' tests/runtests.pl

if [ $# -eq 0 ]; then
    # The cases whose program is the command line and whose servers are of HTTP, of proxies, or none.
    # shellcheck disable=SC2046 # words
    set -- $(perl "$top/scripts/curl-suite/cases.pl" tests/data)
fi

cd tests || exit 2
env -u http_proxy -u https_proxy -u HTTPS_PROXY -u no_proxy -u NO_PROXY -u ALL_PROXY -u all_proxy \
    perl runtests.pl -a -n -E "$top/scripts/curl-suite/excluded" -c "$work/bin/curl" -vc "$(command -v curl)" "$@" \
    > "$work/results" 2>&1
code=$?
# Logs that it prints (-p) have any bytes.
grep -aE '^TEST(DONE|FAIL|INFO)|FAILED' "$work/results" || tail -n 20 "$work/results"
echo "the whole of it: $work/results"
exit $code

# curl's own tests of libcurl (tests/libtest), in the version whose tests of the command scripts/curl-suite.sh runs. The library of the
# same sources takes the place of the system's. Each case of curl's runner whose program uses the library with HTTP(S), a proxy, or no
# server is a test here; those of the library's internals (unit tests) are not.

prepare() {
    command -v cc >/dev/null 2>&1 || { echo "apt-get install gcc make libssl-dev zlib1g-dev"; return 1; }
    curl=$(find "$work" -maxdepth 1 -type d -name 'curl-[0-9]*' | head -n 1)
    if [ -z "$curl" ]; then
        for release in ${SUITE_RELEASE:-forky trixie bookworm}; do
            curl=$(RELEASE=$release sh "$top/scripts/debian-source.sh" curl "$work") && break
        done
        [ -n "$curl" ] || { echo "the source package of curl cannot be had"; return 1; }
    fi
    [ -f "$curl/built" ] || (
        cd "$curl" || exit 1
        ./configure --quiet --disable-static --with-openssl --without-libpsl --without-brotli --without-zstd --without-nghttp2 \
            --without-libidn2 --without-libssh2 --disable-ldap --disable-ntlm --disable-kerberos-auth --disable-negotiate-auth \
            --disable-docs --disable-manual &&
            make -s -C lib && make -s -C src && make -s -C tests/server && make -s -C tests/libtest && make -s -C tests/certs &&
            touch built
    ) >"$work/libtests.build" 2>&1 || { echo "curl's tests could not be built: $work/libtests.build"; return 1; }
    # Programs that look for the library in $CURL_LIBRARY. Libtool's own scripts look in the directory of the build.
    mkdir -p "$work/libtests.bin"
    for program in src/curl tests/libtest/libtests; do
        name=$(basename "$program")
        printf '#!/bin/sh\nLD_LIBRARY_PATH=$CURL_LIBRARY exec timeout 60 "%s/.libs/%s" "$@"\n' "$curl/$(dirname "$program")" "$name" \
            >"$work/libtests.bin/$name"
        chmod +x "$work/libtests.bin/$name"
    done
    cp "$work/libtests.bin/libtests" "$curl/tests/libtest/libtests"
    # The runner tests Digest only if NTLM is enabled.
    sed -i 's/|| $feature{"SPNEGO"};/|| 1;/' "$curl/tests/runtests.pl"
}

# Prints the numbers of the cases that apply.
libtest_cases() {
    perl -0777 -ne '
        BEGIN { %server = map { $_ => 1 } qw(http http-ipv6 http-unix http/2 http-proxy https https-mtls https-proxy none
                                             socks4 socks5 socks5unix) }
        my ($number) = $ARGV =~ m{/test(\d+)$} or next;
        my ($tool) = m{<tool[^>]*>\s*(\S+)\s*</tool>} or next;
        next unless $tool =~ /^lib/;
        my ($servers) = m{<server>(.*?)</server>}s;
        print "$number\n" unless grep { !$server{$_} } grep { !/^%/ } split " ", $servers // "";
    ' "$curl"/tests/data/test* | sort -n
}

run() {
    cd "$curl/tests" || return 1
    # shellcheck disable=SC2046 # words
    CURL_LIBRARY=${1:-$curl/lib/.libs} perl runtests.pl -a -n -c "$work/libtests.bin/curl" -vc "$(command -v curl)" $(libtest_cases) \
        >"$work/libtests.log${1:+.haul}" 2>&1
    perl -ne '
        if (/^test 0*(\d+) SKIPPED/) { print "skip $1\n" }
        elsif (/^test 0*(\d+) ?(?:\.\.\.)?\[/) { $case = $1 }
        print "pass $case\n" if defined $case && / OK \(/;
        if (s/^TESTFAIL: These test cases failed://) { print map { "fail $_\n" } split }
    ' "$work/libtests.log${1:+.haul}"
}

#!/bin/sh
# Builds and tests the Perl module in bindings/perl, with the libhaul of `make libhaul`.
#
#   sh scripts/perl.sh build    perl Makefile.PL && make: creates bindings/perl/blib
#   sh scripts/perl.sh test     runs its tests by prove; the last line counts them in the format of cargo
#
# Prints so and succeeds if Perl's headers, make or a C compiler are missing.
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in
    /*) ;;
    *) target=$PWD/$target ;;
esac

header=$(perl -MConfig -e 'print "$Config{archlibexp}/CORE/perl.h"' 2>/dev/null || true)
if [ -z "$header" ] || [ ! -e "$header" ] || ! perl -MExtUtils::MakeMaker -e1 2>/dev/null || ! command -v "${CC:-cc}" >/dev/null; then
    echo "perl: skipped, Perl's headers, ExtUtils::MakeMaker or a C compiler are missing (apt-get install perl libperl-dev gcc)"
    exit 0
fi
cd bindings/perl

case ${1:-} in
    build)
        # With these arguments it does not run cargo.
        perl Makefile.PL "HAUL_LIB=$target/capi/lib/libhaul.a" "HAUL_INCLUDE=$target/capi/include" >/dev/null
        make -s >/dev/null
        [ -e blib/arch/auto/HTTP/Haul/Haul.so ] || [ -e blib/arch/auto/HTTP/Haul/Haul.bundle ]
        echo "perl: bindings/perl/blib is built"
        ;;
    test)
        if [ ! -d blib/arch/auto/HTTP/Haul ]; then
            echo "perl: bindings/perl is not built: make bindings"
            exit 1
        fi
        # Prints the output of the tests, and counts passed, failed and skipped ones.
        out=$(mktemp)
        trap 'rm -f "$out"' EXIT
        code=0
        prove -b -v t/*.t > "$out" 2>&1 || code=$?
        grep -vE '^(ok|1\.\.)' "$out" || true
        awk '/^ok .*# [Ss][Kk][Ii][Pp]/ { skipped++; next } /^ok / { passed++ } /^not ok / { failed++ } / skipped: / { skipped++ }
            END { printf "test result: perl. %d passed; %d failed; %d ignored;\n", passed, failed, skipped }' "$out"
        exit "$code"
        ;;
    *)
        echo "perl.sh build|test" >&2
        exit 2
        ;;
esac

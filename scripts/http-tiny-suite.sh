#!/bin/sh
# Runs HTTP::Tiny's own tests and corpus of requests and responses, from the source package of Debian's perl, with HTTP::Haul instead of
# HTTP::Tiny. The tests replace HTTP::Tiny's sockets with files; scripts/http-tiny-suite serves those files from a local server.
#
#   sh scripts/http-tiny-suite.sh          fetches the source (apt-get source), runs the tests
#   sh scripts/http-tiny-suite.sh DIR      tests of an unpacked HTTP-Tiny in DIR
#
# At the end it prints the number of requests that HTTP::Haul made. docs/perl.md explains which tests are not run or not counted.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
blib=$top/bindings/perl/blib
[ -d "$blib/arch" ] || { echo "bindings/perl is not built: make bindings"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=${1:-}
[ -n "$source" ] || source=$(sh "$top/scripts/debian-source.sh" perl "$work" cpan/HTTP-Tiny) ||
    { echo "skipped: the source package of perl could not be fetched"; exit 0; }
[ -d "$source/corpus" ] || { echo "$source: no corpus/ there"; exit 2; }

# Files that test internals of HTTP::Tiny: its URL parser, reading and writing of its handle.
inside='010_url 020_headers 030_response 040_content 050_chunked_body 060_http_date 170_keepalive 190_find_CA'
# Tests of behaviour that differs, as docs/perl.md explains.
differs='get-(12|15|19)\.txt|get-16\.txt content|get-22\.txt host'
log=$work/requests
: > "$log"
failed=0
passed=0
skipped=0
cd "$source" || exit 2
for test in t/*.t; do
    name=$(basename "$test" .t)
    case $name in
        00-report-prereqs | 200_live* | 210_live*) continue ;;
    esac
    case " $inside " in
        *" $name "*) echo "$test: skipped, it tests HTTP::Tiny's inside"; skipped=$((skipped + 1)); continue ;;
    esac
    HAUL_TINY_LOG="$log" PERL5LIB="$top/scripts/http-tiny-suite:$blib/arch:$blib/lib" \
        timeout 120 perl -I. -MReplay "$test" > "$work/out" 2>&1
    code=$?
    ok=$(grep -c '^ *ok' "$work/out")
    known=$(grep -E '^ *not ok' "$work/out" | grep -cE "$differs")
    bad=$(grep -E '^ *not ok' "$work/out" | grep -cvE "$differs")
    passed=$((passed + ok))
    skipped=$((skipped + known))
    [ "$bad" -eq 0 ] && [ "$known" -gt 0 ] && code=0
    if [ "$code" -ne 0 ] || [ "$bad" -ne 0 ]; then
        failed=$((failed + 1))
        echo "$test: exit $code, $bad failed, $ok passed"
        grep -E '^ *(not ok|#)' "$work/out" | head -n 40
    else
        echo "$test: $ok passed"
    fi
done
total=$(awk '{ sum += $1 } END { print sum + 0 }' "$log")
echo "$passed tests passed, $failed files failed, $skipped do not apply, $total requests by HTTP::Haul"
[ "$failed" -eq 0 ] && [ "$total" -gt 0 ]

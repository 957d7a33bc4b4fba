# Sourced by the scripts that run tests of other Perl projects with haul in their place. Before, the script sets `suite`: its directory
# below scripts/ has the module that its tests are run with. Sets:
#
#   top, blib       the checkout, and the module built in bindings/perl
#   work            a directory that is removed at the end
#   passed, failed, skipped, differs     numbers of checks (with those of subtests), of files that failed, of skipped checks and files,
#                   of checks in `known`
#
# Afterwards the script sets `module`, and may set `known`, an extended regular expression of failures that do not count: lines of the
# form "t/file.t: not ok 1 - name".

top=$(cd "$(dirname "$0")/.." && pwd)
blib=$top/bindings/perl/blib
[ -d "$blib/arch" ] || { echo "bindings/perl is not built: make bindings"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
requests=$work/requests
: > "$requests"
passed=0
failed=0
skipped=0
differs=0
known='^$'
module=

skip() {
    echo "skipped: $1"
    exit 0
}

# Ends the script if Perl lacks one of these modules; the packages that contain them are the first argument.
needs_modules() {
    packages=$1
    shift
    for name in "$@"; do
        perl -e '(my $file = "$ARGV[0].pm") =~ s{::}{/}g; exit !grep { -e "$_/$file" } @INC' "$name" || skip "Perl has no $name; apt-get install $packages"
    done
}

# Sets `source` to the directory in the first argument, or to the source package of that name. A third and a fourth argument are the
# git repository and the tag from which to fetch it if the package is not available.
fetch_source() {
    source=$1
    [ -n "$source" ] || source=$(sh "$top/scripts/debian-source.sh" "$2" "$work/source") || source=
    if [ -z "$source" ] && [ -n "${3:-}" ]; then
        source=$work/git
        git clone -q --depth 1 --branch "$4" "$3" "$source" 2>/dev/null || source=
    fi
    [ -n "$source" ] || skip "the source of $2 could not be fetched"
    [ -d "$source/t" ] || { echo "$source: no t/ there"; exit 2; }
}

# Runs one test file in `source` with the module, and counts.
run_file() {
    out=$work/out
    flags=
    head -n 1 "$1" | grep -q -e '^#!.* -[a-zA-Z]*T' && flags=-T
    # Perl ignores PERL5LIB with -T. Programs that a test starts need it.
    env -u http_proxy -u https_proxy -u no_proxy NO_NETWORK_TESTING=1 HAUL_SUITE_LOG="$requests" \
        PERL5LIB="$top/scripts/$suite:$blib/arch:$blib/lib:$source/lib" \
        timeout 180 perl $flags -I"$top/scripts/$suite" -I"$blib/arch" -I"$blib/lib" -I"$source/lib" -I. "-M$module" "$1" > "$out" 2>&1
    code=$?
    ok=$(grep '^ *ok [0-9]' "$out" | grep -Evc '# (skip|TODO)')
    grep -Ei '^ *not ok' "$out" | grep -v '# TODO' | sed "s|^ *|$1: |" > "$work/bad"
    bad=$(grep -Evc "$known" "$work/bad")
    is_known=$(grep -Ec "$known" "$work/bad")
    passed=$((passed + ok))
    differs=$((differs + is_known))
    skipped=$((skipped + $(grep -Eci '^ *(ok .*# skip|1\.\.0 # skip)' "$out")))
    # A file with only such failures passes.
    [ "$bad" -eq 0 ] && [ "$is_known" -gt 0 ] && code=0
    if [ $code -ne 0 ] || [ "$bad" -ne 0 ]; then
        failed=$((failed + 1))
        echo "$1: exit $code, $bad failed, $ok passed"
        grep -E '^ *(not ok|#)|^[A-Z].* at ' "$out" | head -n "${HAUL_SUITE_LINES:-20}"
    else
        echo "$1: $ok passed"
    fi
}

# Prints the numbers. Returns 1 if a file failed, or if haul made no requests.
report() {
    echo "requests by haul:"
    sort -k2 "$requests"
    total=$(awk '{ sum += $1 } END { print sum + 0 }' "$requests")
    echo "$passed checks passed, $failed files failed, $differs do not apply, $skipped skipped, $total requests by haul"
    [ "$failed" -eq 0 ] && [ "$total" -gt 0 ]
}

#!/bin/sh
# Runs LWP's own tests, from Debian's source package libwww-perl, with haul for http and https: the system's perl runs each t/ file with
# LWP::Protocol::haul loaded.
#
#   sh scripts/lwp-suite.sh          fetches the source (apt-get source, with a temporary source list), runs the tests
#   sh scripts/lwp-suite.sh DIR      tests of an unpacked source in DIR
#
# Connections are not kept, because the test server accepts one at a time. At the end it prints the number of requests by haul for each
# file. Fails if the files that use the network made none. docs/perl.md lists tests that do not apply.
set -u

suite=lwp-suite
. "$(dirname "$0")/perl-suite.sh"
needs_modules "libwww-perl libtest-fatal-perl libtest-needs-perl" LWP Test::Fatal Test::Needs
fetch_source "${1:-}" libwww-perl

module=ForceHaul
# Does not apply (docs/perl.md): an unrequested 206 that does not name its part.
known='^t/local/http.t: not ok [0-9]+ - partial: (is_success|aborted)'
HAUL_LWP_KEEP_ALIVE=0
export HAUL_LWP_KEEP_ALIVE
cd "$source" || exit 2
for test in t/*.t t/*/*.t; do
    case $test in
        *00-report-prereqs.t) continue ;;
    esac
    run_file "$test"
done
report

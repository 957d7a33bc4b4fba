#!/bin/sh
# Runs WWW::Mechanize's own tests with haul for http and https: the system's perl runs each t/ file with LWP::Protocol::haul loaded.
#
#   sh scripts/mechanize-suite.sh          fetches the source (apt-get source, or git), runs the tests
#   sh scripts/mechanize-suite.sh DIR      tests of an unpacked source in DIR
#
# At the end it prints the number of requests by haul for each file. docs/perl.md has the result.
set -u

suite=lwp-suite
. "$(dirname "$0")/perl-suite.sh"
needs_modules "libwww-mechanize-perl libhttp-daemon-perl libpath-tiny-perl libtest-deep-perl libtest-exception-perl libtest-fatal-perl
    libtest-memory-cycle-perl libtest-nowarnings-perl libtest-output-perl libtest-taint-perl libtest-warn-perl libtest-warnings-perl" \
    WWW::Mechanize HTTP::Daemon Path::Tiny Test::Deep Test::Exception Test::Fatal Test::Memory::Cycle Test::NoWarnings Test::Output \
    Test::Taint Test::Warn Test::Warnings
version=$(perl -MWWW::Mechanize -e 'print WWW::Mechanize->VERSION')
fetch_source "${1:-}" libwww-mechanize-perl https://github.com/libwww-perl/WWW-Mechanize "v$version"

module=ForceHaul
cd "$source" || exit 2
for test in t/*.t t/*/*.t; do
    run_file "$test"
done
report

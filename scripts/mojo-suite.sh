#!/bin/sh
# Runs Mojolicious' own tests, from its source package in Debian, with HTTP::Haul::Promise below Mojo::UserAgent: promises, the user
# agent, and all that send requests by it, blocking or not.
#
#   sh scripts/mojo-suite.sh          fetches the source (apt-get source, or git), runs the tests
#   sh scripts/mojo-suite.sh DIR      tests of an unpacked source in DIR
#
# At the end it prints the number of requests by haul for each file. docs/perl.md explains which tests are not run or not counted.
set -u

suite=mojo-suite
. "$(dirname "$0")/perl-suite.sh"
needs_modules libmojolicious-perl Mojolicious
version=$(perl -MMojolicious -e 'print Mojolicious->VERSION')
fetch_source "${1:-}" libmojolicious-perl https://github.com/mojolicious/mojo "v$version"

module=OverHaul
# Each has its reason in docs/perl.md.
known='^t/mojo/daemon.t: not ok [0-9]+ - (has local (address|port)|Upload)$'
known="$known|^t/mojo/user_agent.t: not ok (47|49|51|155|164|4|194|199|200|201|209|232) - "
# Debian's package lacks these files.
known="$known|^t/mojolicious/production_app.t: not ok [0-9]+ - found jQuery$"
cd "$source" || exit 2
for test in t/mojo/*.t t/mojolicious/*.t t/test/*.t; do
    # Other files test parts of Mojolicious that haul does not replace.
    grep -Eq '^ *use (Test::Mojo|Mojo::UserAgent|Mojo::Promise|ojo)\b' "$test" || continue
    run_file "$test"
done
report

#!/bin/sh
# Creates the environment of the job python: the peers of bench/python/requirements.txt in target/py-bench. The job uses the haul that
# `make python` has installed in target/py, so rebuilding haul does not need this script again. A peer that cannot be installed is
# left out, and the job reports it.
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
target=$(cd "$target" && pwd)
[ -x "$target/py/bin/python" ] || {
    echo "bench-python: there is no $target/py: make python" >&2
    exit 1
}
bench=$target/py-bench
rm -rf "$bench"
"$target/py/bin/python" -m venv "$bench"
# Those that cannot be had are passed over, one by one; the job says which are not there.
while read -r package; do
    apart=
    case $package in
    '' | '#'*) continue ;;
    # The package contains another urllib3, which requests and other peers must not use.
    niquests*) apart=--target=$bench/apart ;;
    esac
    # shellcheck disable=SC2086 # none, or one word
    "$bench/bin/python" -m pip --disable-pip-version-check --quiet install $apart "$package" ||
        echo "bench-python: $package cannot be had" >&2
done <bench/python/requirements.txt
# Listed after the peers' packages, so that only haul is imported from there.
site='import sysconfig; print(sysconfig.get_path("purelib"))'
"$target/py/bin/python" -c "$site" >"$("$bench/bin/python" -c "$site")/haul.pth"
"$bench/bin/python" -c 'import haul; print("bench-python: haul from", haul.__path__[0])'

#!/bin/sh
# The environment of the job python: the peers of bench/python/requirements.txt in target/py-bench, and the haul that `make python`
# has left in target/py, whichever that is at the time: building haul anew needs no second run of this.
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
    # It brings a urllib3 of its own under that name, which requests and others must not run on.
    niquests*) apart=--target=$bench/apart ;;
    esac
    # shellcheck disable=SC2086 # none, or one word
    "$bench/bin/python" -m pip --disable-pip-version-check --quiet install $apart "$package" ||
        echo "bench-python: $package cannot be had" >&2
done <bench/python/requirements.txt
# Behind the peers' own packages, so that only haul is taken from there.
site='import sysconfig; print(sysconfig.get_path("purelib"))'
"$target/py/bin/python" -c "$site" >"$("$bench/bin/python" -c "$site")/haul.pth"
"$bench/bin/python" -c 'import haul; print("bench-python: haul from", haul.__path__[0])'

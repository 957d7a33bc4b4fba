#!/bin/sh
# Runs fsspec's own tests of its file system for http with haul.fsspec in its place, and those of its other parts that use it.
#
#   sh scripts/fsspec-suite.sh             fetches fsspec's repository with git, at the release that requirements.txt names
#   sh scripts/fsspec-suite.sh CHECKOUT    tests of a checkout of that release (the source package on PyPI has none)
#
# At the end it prints the number of requests that haul made. docs/python.md explains which tests are left out. Needs the wheel of
# `make python`, and packages from PyPI.
set -eu

suite=fsspec-suite
. "$(dirname "$0")/python-suite.sh"

version=$(version_of fsspec)
checkout=${1:-}
if [ -z "$checkout" ]; then
    checkout=bench/work/suites/fsspec-$version
    [ -d "$checkout" ] ||
        git clone -q --depth 1 --branch "$version" https://github.com/fsspec/filesystem_spec "$checkout" ||
        skip "fsspec's tests could not be fetched"
fi
[ -f "$checkout/fsspec/implementations/tests/test_http.py" ] || { echo "$checkout: no tests of fsspec there"; exit 2; }

# The tests run as a part of the installed package, because a checkout lacks a generated file.
package=$("$venv/bin/python" -c 'import fsspec; print(fsspec.__path__[0])')
rm -rf "$package/tests" "$package/implementations/tests"
cp -R "$checkout/fsspec/tests" "$package/tests"
cp -R "$checkout/fsspec/implementations/tests" "$package/implementations/tests"
cp "$checkout/fsspec/conftest.py" "$package/"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cd "$package/.."
code=0
# shellcheck disable=SC2086 # a list of arguments
HAUL_FSSPEC_LOG=$log PYTHONPATH=$here "$venv/bin/python" -m pytest -p no:cacheprovider -q -W ignore $deselect \
    fsspec/implementations/tests/test_http.py fsspec/implementations/tests/test_http_sync.py \
    fsspec/implementations/tests/test_reference.py fsspec/tests/test_generic.py fsspec/tests/test_caches.py \
    fsspec/tests/test_spec.py::test_cache_not_pickled || code=$?
awk '{ sum += $1 } END { print sum + 0, "requests by haul" }' "$log"
awk '{ sum += $1 } END { exit sum == 0 }' "$log"
exit "$code"

#!/bin/sh
# Runs aiohttp's own tests of its client over haul.AsyncSession: arguments, responses and errors are translated by name. A test that uses
# a name that AsyncSession does not have is skipped, and the last lines list these names. They have the numbers of tests and of the
# requests that haul made, too.
#
#   sh scripts/aiohttp-suite.sh             fetches aiohttp's repository with git, at the release that requirements.txt names
#   sh scripts/aiohttp-suite.sh CHECKOUT    tests of a checkout of that release
#
# docs/python.md explains which tests are left out. Needs the wheel of `make python`, and packages from PyPI.
set -eu

suite=aiohttp-suite
. "$(dirname "$0")/python-suite.sh"

version=$(version_of aiohttp)
checkout=${1:-}
if [ -z "$checkout" ]; then
    checkout=bench/work/suites/aiohttp-$version
    [ -d "$checkout" ] || git clone -q --depth 1 --branch "v$version" https://github.com/aio-libs/aiohttp "$checkout" ||
        skip "aiohttp's tests could not be fetched"
fi
[ -f "$checkout/tests/test_client_functional.py" ] || { echo "$checkout: no tests of aiohttp there"; exit 2; }

# A copy of the tests alone: they import the installed aiohttp, not its sources.
rm -rf "$venv/aiohttp-$version"
mkdir "$venv/aiohttp-$version"
cp -R "$checkout/tests" "$venv/aiohttp-$version/tests"
cd "$venv/aiohttp-$version"
: >pytest.ini
# shellcheck disable=SC2086 # a list of arguments
PYTHONPATH=$here "$venv/bin/python" -m pytest -c pytest.ini --rootdir . -p over_haul_aiohttp -p no:cacheprovider -q -W ignore \
    --timeout 60 $deselect tests/test_client_functional.py tests/test_proxy_functional.py

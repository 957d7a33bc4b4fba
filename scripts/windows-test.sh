#!/bin/sh
# Builds haul.exe with mingw, and runs it under wine against servers on loopback: windows-test.sh [HAUL.EXE]
#
# With HAUL.EXE, builds nothing. Where mingw, wine, python3 or openssl are missing, says so and succeeds.
set -eu

cd "$(dirname "$0")/.."
skip() {
    echo "windows-test: skipped: $1" >&2
    exit 0
}
triple=x86_64-pc-windows-gnu
command -v x86_64-w64-mingw32-gcc >/dev/null || skip "there is no mingw (Debian: apt install gcc-mingw-w64-x86-64)"
PATH=$PATH:/usr/lib/wine
wine=$(command -v wine64 || command -v wine) || skip "there is no wine (Debian: apt install wine64)"
command -v wineserver >/dev/null || skip "there is no wineserver (Debian: apt install wine64)"
command -v openssl >/dev/null || skip "there is no openssl"
command -v python3 >/dev/null || skip "there is no python3"

if [ $# -gt 0 ]; then
    built=$1
else
    rustup target add "$triple" >/dev/null 2>&1 || skip "rustup cannot install Rust's standard library for $triple"
    "${CARGO:-cargo}" build --locked --target "$triple" -p httphaul-cli --bin haul
    built=${CARGO_TARGET_DIR:-target}/$triple/debug/haul.exe
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/haul-windows-test.XXXXXX")
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wineserver -k 2>/dev/null || true
    wineserver -w 2>/dev/null || true
    rm -rf "$scratch"
}
export WINEPREFIX="$scratch/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=;bcryptprimitives=n,b"
trap cleanup EXIT
trap 'exit 1' INT TERM

cp "$built" "$scratch/haul.exe"
# This wine's library of random numbers has not the function that Rust's standard library calls.
x86_64-w64-mingw32-gcc -shared -Os -o "$scratch/bcryptprimitives.dll" scripts/windows-test/process_prng.c -ladvapi32
mkdir "$scratch/work"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$scratch/key.pem" -out "$scratch/work/ca.pem" 2>/dev/null
python3 scripts/windows-test/server.py "$scratch/ports" "$scratch/work/ca.pem" "$scratch/key.pem" &
server=$!
for _ in $(seq 100); do
    [ -s "$scratch/ports" ] && break
    sleep 0.1
done
read -r port tls_port closed_port <"$scratch/ports"
url=http://127.0.0.1:$port

cd "$scratch/work"
# The first start makes wine's directory, which takes long.
timeout 180 "$wine" ../haul.exe --version >/dev/null 2>&1 || true
failed=0
passed=0
# haul ARGUMENT...: its output is in out and err beside this directory, and its exit code in $code.
haul() {
    code=0
    timeout 60 "$wine" ../haul.exe "$@" >../out 2>../err </dev/null || code=$?
}
# check WHAT CONDITION...: one line for each test.
check() {
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what (exit $code)"
        sed 's/^/     /' ../err | head -5
    fi
}
holds() { [ "$(cat "$1")" = "$2" ]; }
says() { grep -qF -- "$2" "$1"; }
all() { while [ $# -gt 0 ]; do eval "$1" || return 1; shift; done; }

haul --version
check "--version" says ../out "haul 0."
haul --help
check "--help" says ../out --output
haul "$url/small"
check "GET to standard output" all '[ $code = 0 ]' 'holds ../out small'
haul "$url/bytes"
check "no line end is converted" cmp -s ../out ../bytes
haul -o page.bin "$url/bytes"
check "-o FILE" cmp -s page.bin ../bytes
haul -o 'd\e\page.bin' --create-dirs "$url/bytes"
check "-o with backslashes and --create-dirs" cmp -s d/e/page.bin ../bytes
haul -o "$(printf '\303\251.txt')" "$url/small"
check "-o with a name that is not ASCII" holds "$(printf '\303\251.txt')" small
haul -o NUL "$url/small"
check "-o NUL" all '[ $code = 0 ]' '! [ -e NUL ]'
haul -o NUL "$url/small" -o NUL "$url/number/2"
check "-o NUL for two URLs" all '[ $code = 0 ]' '! [ -e NUL ]'
haul -c NUL --hsts NUL --alt-svc NUL "$url/cookie"
check "-c, --hsts and --alt-svc with NUL" all '[ $code = 0 ]' '! [ -s ../err ]' '! [ -e NUL ]'
haul --events NUL -D NUL --stderr NUL "$url/small"
check "--events NUL with -D NUL and --stderr NUL" all '[ $code = 0 ]' '! [ -e NUL ]'
haul --warc same.gz --events Same.GZ "$url/small"
check "own files that differ in case are one" [ "$code" = 2 ]
haul --out-null "$url/small"
check "--out-null" all '[ $code = 0 ]' '! [ -e NUL ]'
haul -O "$url/a%3Fb%3Cc%3E%7C%2A%22.txt"
check "-O replaces reserved characters" holds a_b_c____.txt small
haul -O "$url/x.txt%3Astream"
check "-O names no stream of a file" holds x.txt_stream small
haul -O "$url/C%3Aevil.txt"
check "-O names no drive" holds C_evil.txt small
haul -O "$url/..%5C..%5Cevil.txt"
check "-O leaves no directory" all 'holds _._.._evil.txt small' '! [ -e ../evil.txt ]'
haul -O "$url/nul.txt"
check "-O names no device" holds _nul.txt small
haul curl -s -O "$url/com1"
check "curl -O names no device" holds _com1 small
haul -O "$url/GIT~1"
check "-O names no short name" holds GIT_1 small
haul -o 'out\{path}' --create-dirs "$url/GIT~1/hooks/pre-commit"
check "-o {path} names no short name" holds out/GIT_1/hooks/pre-commit small
printf '{"url":"%s/small","output":"GIT~1/config"}\n' "$url" >records.jsonl
haul --jsonl-in --input-file records.jsonl --create-dirs
check "a record names no short name" all '[ $code != 0 ]' '! [ -e GIT~1 ]' 'says ../err "~ before a digit"'
haul "$url/dots" --extract 'v=([^ ]*)' --then "$url/small?{}" -o 'then\a\{}\page.html' --create-dirs
check "-o with a value leaves no directory" all 'holds then/a/_/page.html small' 'holds then/a/_npmrc/page.html small' '! [ -e then/page.html ]'
haul -O -J "$url/disposition"
check "-J names no device or stream" holds _CON.a_b small
haul -o 'out\{host}\{path}' --create-dirs "$url/p/q%3Fr"
check "-o {host}\\{path}" holds out/127.0.0.1/p/q_r small
haul --mirror-paths "$url/m/list.php?id=1"
check "--mirror-paths with a query" holds "127.0.0.1+$port/m/list.php_id=1" small
for number in $(seq 40); do echo "$url/number/$number"; done >list
haul --input-file list
check "a list in parallel, in its order" all '[ $code = 0 ]' '[ "$(cat ../out)" = "$(seq 40)" ]'
haul --input-file list -o 'many/{name}.txt' --create-dirs
check "a list in parallel, into files" all '[ $code = 0 ]' '[ "$(ls many | wc -l)" = 40 ]' 'holds many/17.txt 17'
haul -o 'Same.txt' "$url/small" -o 'same.TXT' "$url/number/2"
check "names that differ in case are one file" all '[ $code = 23 ]'
haul --mirror-paths --output-dir case "$url/Docs/a" "$url/docs/a"
check "directories that differ in case are one" all '[ $code = 23 ]' '[ "$(find case -name a | wc -l)" = 1 ]'
haul --mirror-paths --output-dir case2 "$url/docs2/intro" "$url/Docs2"
check "a file beside a directory that differs in case" all '[ $code = 0 ]' '[ -n "$(find case2 -name Docs2.file)" ]'
haul --job job.haul --input-file list --jsonl -o job.jsonl
check "--job" all '[ $code = 0 ]' '[ "$(wc -l <job.jsonl)" = 40 ]'
haul --job job.haul
check "--job goes on with a finished job" all '[ $code = 0 ]' '[ "$(wc -l <job.jsonl)" = 40 ]'
haul job status job.haul
check "haul job status" all '[ $code = 0 ]' 'says ../out 40'
haul --cacert ca.pem "https://localhost:$tls_port/small"
check "https with --cacert" all '[ $code = 0 ]' 'holds ../out small'
haul "https://localhost:$tls_port/small"
check "https without trust: exit 60" [ "$code" = 60 ]
haul "$url/missing"
check "status 404: exit 22" [ "$code" = 22 ]
haul "http://127.0.0.1:$closed_port/"
check "closed port: exit 7" [ "$code" = 7 ]
haul -o missing/x "$url/small"
check "a directory that is missing: exit 23" [ "$code" = 23 ]
haul -o 'd\' "$url/small"
check "-o names a directory: exit 23" [ "$code" = 23 ]
haul --no-such-option
check "an unknown option: exit 2" [ "$code" = 2 ]
haul -d @page.bin "$url/echo"
check "-d @FILE" [ "$code" = 0 ]
haul --data-binary @page.bin "$url/echo"
check "--data-binary @FILE" cmp -s ../out ../bytes
haul -T page.bin "$url/echo"
check "-T FILE" cmp -s ../out ../bytes
code=0
timeout 60 "$wine" ../haul.exe --data-binary @- "$url/echo" <../bytes >../out 2>../err || code=$?
check "standard input is binary" cmp -s ../out ../bytes
code=0
timeout 60 "$wine" ../haul.exe "$url/bytes" 2>../err | cat >../out || code=$?
check "standard output to a pipe" cmp -s ../out ../bytes
haul -c jar.txt "$url/cookie"
cp jar.txt before.txt
haul -c jar.txt -b jar.txt "$url/cookie"
check "a cookie file is replaced" all 'says jar.txt token' '! cmp -s jar.txt before.txt' '! ls -A | grep -q "^\.haul"'
for home in "$WINEPREFIX"/drive_c/users/*; do
    printf 'machine 127.0.0.1 login me password secret\n' >"$home/_netrc"
    printf 'user-agent = "from-config"\n' >"$home/_curlrc"
done
haul -n "$url/auth"
check "_netrc in the home directory" all '[ $code = 0 ]' 'holds ../out "me:secret"'
haul curl -s "$url/agent"
check "_curlrc in the home directory" holds ../out from-config
haul -D heads.txt -o body.txt "$url/small"
check "-D FILE" says heads.txt "200 OK"
haul --stderr errors.txt "http://127.0.0.1:$closed_port/"
check "--stderr FILE" says errors.txt "(7)"
# wine turns SIGINT into Ctrl-C. The exit code is the last byte of STATUS_CONTROL_C_EXIT, 0xC000013A.
timeout 60 "$wine" ../haul.exe -o slow.bin "$url/slow" >../out 2>../err &
slow=$!
for _ in $(seq 100); do
    ls -A | grep -q '^\.haul' && break
    sleep 0.1
done
pkill -INT -P "$slow" || true
code=0
wait "$slow" || code=$?
check "Ctrl-C leaves no file" all '[ $code = 58 ]' '! [ -e slow.bin ]' '! ls -A | grep -q "^\.haul"'
haul --agent "$url/small"
check "--agent is refused: exit 2" all '[ $code = 2 ]' 'says ../err "Windows has no agent"'
export HAUL_AGENT=1
haul curl "$url/small" "$url/number/2" "$url/number/3"
check "HAUL_AGENT warns once" all '[ $code = 0 ]' '[ "$(grep -c "HAUL_AGENT has no effect" ../err)" = 1 ]'
unset HAUL_AGENT
haul ftp "$url/small"
check "haul ftp is refused: exit 2" all '[ $code = 2 ]' 'says ../err "haul curl"'
haul curl -s "file:///Z:$(pwd)/page.bin"
check "file: URL with a drive" cmp -s ../out ../bytes
haul --warc crawl.warc.gz "$url/small"
check "--warc" all '[ $code = 0 ]' '[ -s crawl.warc.gz ]'
haul --events events.jsonl --input-file list --out-null
check "--events FILE" all '[ $code = 0 ]' '[ -s events.jsonl ]'

echo "windows-test: $passed passed, $failed failed ($("$wine" --version))"
[ "$failed" = 0 ]

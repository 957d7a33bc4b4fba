#!/bin/sh
# Runs scripts and programs of others that call `curl`, once with curl and once with haul in its place. Compares the command lines that
# the program ran, the requests that the server received, the output, the files and the exit code.
#
#   sh scripts/curl-programs.sh                    all programs
#   sh scripts/curl-programs.sh dehydrated nvm     these
#
# Each file in scripts/curl-programs/programs is one program. It sets these variables and functions:
#
#   title="…"          what is run
#   source="deb A B"   Debian packages, which are unpacked, not installed; `git OWNER/NAME`, `pypi NAME==VERSION`, `npm NAME@VERSION`,
#                      or `installed COMMAND`. Several lines are possible.
#   hosts="a b"        the names of servers; all are this machine
#   ports="8080"       further ports of the server, besides 80 and 443
#   serve              writes the server's files (`put HOST/PATH`); $site/handler.py may have a function `handle(request)`
#   run                runs the program in an empty directory
#   mask='REGEX|…'     text that differs between two runs with the same curl, in requests, output and files
#   unordered=1        the program runs several curl at a time
#   skip_files='REGEX' files that are not compared
#
# A program runs in a network namespace that has only loopback, in a root directory made of the system's and the packages' files. The
# servers are on loopback, with a certificate of an authority that only this root directory trusts. scripts/curl-programs/expected lists
# the differences that are known, with their reasons. Fails if a program differs otherwise, or if a listed one does not differ.
#
#   HAUL=PATH         the program haul (target/release/haul, else target/debug/haul)
#   CURL=PATH         the curl to compare with (the installed one)
#   SUITE_DIR=DIR     a directory for packages and results, which is kept (default: a temporary directory)
#
# Needs root, Linux, unshare, overlayfs, openssl and Python; otherwise prints so and succeeds. Leaves out programs whose source is not
# available.
set -u

. "$(dirname "$0")/suite-paths.sh"
here=$top/scripts/curl-programs
curl=${CURL:-$(command -v curl)}
[ -n "$curl" ] || { echo "skipped: no curl to compare with"; exit 0; }
python=$(python3 -c 'import sys; print(sys.executable)') && command -v openssl >/dev/null || { echo "skipped: needs Python and openssl"; exit 0; }
[ "$(id -u)" = 0 ] && unshare --net --mount true 2>/dev/null || { echo "skipped: needs root and namespaces"; exit 0; }
export top here haul curl python work
mkdir -p "$work/packages" "$work/results"
unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY no_proxy NO_PROXY CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR CURL_HOME

# The authority of the servers' certificates.
if [ ! -f "$work/ca.pem" ]; then
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj '/CN=Test authority' -keyout "$work/ca.key" -out "$work/ca.pem" \
        -addext basicConstraints=critical,CA:TRUE 2>/dev/null || { echo "skipped: openssl makes no certificate"; exit 0; }
fi

# certificate HOSTS DIR: makes a certificate for these names.
certificate() {
    names=DNS:localhost,IP:127.0.0.1
    for host in $1; do names=$names,DNS:$host; done
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=origin -keyout "$2/server.key" -out "$2/server.csr" 2>/dev/null &&
        echo "subjectAltName=$names" >"$2/server.ext" &&
        openssl x509 -req -in "$2/server.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 20 \
            -extfile "$2/server.ext" -out "$2/server.pem" 2>/dev/null
}

# package KIND NAME: fetches and unpacks a package once; prints its directory. Prints nothing for an installed program.
package() {
    directory=$work/packages/$1-$(echo "$2" | tr / +)
    case $1 in
        installed) command -v "$2" >/dev/null; return ;;
    esac
    [ ! -f "$directory/.complete" ] || { echo "$directory"; return; }
    rm -rf "$directory" "$directory.fetch"
    mkdir -p "$directory.fetch" "$directory/opt"
    case $1 in
        deb) (cd "$directory.fetch" && apt-get download -q "$2" && dpkg-deb -x ./*.deb "$directory") ;;
        git) git clone -q --depth 1 "https://github.com/$2" "$directory/opt/$(basename "$2")" ;;
        pypi) "$python" -m pip --quiet --disable-pip-version-check install --no-deps --no-compile --target "$directory/opt/python" "$2" ;;
        npm) (cd "$directory.fetch" && npm pack --silent "$2" && mkdir -p "$directory/opt/${2%@*}" &&
            tar xzf ./*.tgz -C "$directory/opt/${2%@*}" --strip-components 1) ;;
        *) false ;;
    esac >"$directory.log" 2>&1 || return 1
    # Debian releases other than those with one /usr would replace these links.
    for link in bin sbin lib; do
        [ ! -d "$directory/$link" ] || { mkdir -p "$directory/usr/$link" && cp -a "$directory/$link/." "$directory/usr/$link" &&
            rm -rf "${directory:?}/$link"; }
    done
    rm -rf "$directory.fetch"
    # The version is for the table in docs/curl.md.
    case $1 in
        deb) apt-cache show --no-all-versions "$2" 2>/dev/null | sed -n 's/^Version: //p' ;;
        git) git -C "$directory/opt/$(basename "$2")" log -1 --format='%h %cs' ;;
        *) echo "${2##*[=@]}" ;;
    esac >"$directory/.complete"
    rm -rf "$directory/opt"/*/.git
    echo "$directory"
}

# sources: unpacks what $source names. Prints the directories.
sources() {
    echo "$source" | while read -r kind names; do
        for name in $names; do
            package "$kind" "$name" || { echo "missing: $kind $name" >&2; exit 1; }
        done
    done
}

[ $# -gt 0 ] || set -- $(cd "$here/programs" && ls | sed -n 's/\.sh$//p')
for name in "$@"; do
    [ -f "$here/programs/$name.sh" ] || { echo "$name: no such program"; exit 2; }
    (
        title='' source='' hosts='' ports='' mask='' unordered='' skip_files=''
        serve() { :; }
        . "$here/programs/$name.sh"
        results=$work/results/$name
        rm -rf "$results"
        mkdir -p "$results"
        layers=$(sources 2>"$results/missing") || { echo "$name: skipped: $(cat "$results/missing")"; exit; }
        certificate "$hosts" "$results" || { echo "$name: skipped: openssl makes no certificate"; exit; }
        printf '%s\n' "$layers" >"$results/layers"
        for kind in curl haul; do
            mkdir -p "$results/$kind"
            timeout 300 unshare --net --mount --pid --fork sh "$here/inside.sh" "$name" "$kind" >"$results/$kind/log" 2>&1
        done
        MASK=$mask UNORDERED=$unordered SKIP_FILES=$skip_files "$python" "$here/compare.py" "$name" "$results" "$here/expected"
    )
done | tee "$work/results/summary"
echo "$(grep -c ': same' "$work/results/summary") programs the same, $(grep -c ': as expected' "$work/results/summary") differ as expected," \
    "$(grep -c ': DIFFERS' "$work/results/summary") differ, $(grep -c ': skipped' "$work/results/summary") skipped"
! grep -q ': DIFFERS' "$work/results/summary"

# Read by the scripts that run curl's own tests: which haul takes curl's place, and where it is put. Sets top, haul and work.
#
#   HAUL=PATH            the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR        what is kept from one run to the next (a temporary directory otherwise)
#   SUITE_RELEASE=NAME   Debian's release whose curl it is

top=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$top/target}
haul=${HAUL:-$target/release/haul}
[ -x "$haul" ] || haul=$target/debug/haul
[ -x "$haul" ] || { echo "haul is not built: cargo build --release -p haul-cli"; exit 2; }
haul=$(cd "$(dirname "$haul")" && pwd)/$(basename "$haul")

if [ -n "${SUITE_DIR:-}" ]; then
    mkdir -p "$SUITE_DIR"
    work=$(cd "$SUITE_DIR" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work/bin"
ln -sf "$haul" "$work/bin/curl"

# curl_source RELEASES [MEMBER]: curl's source package, or only MEMBER of it, from the first of these releases that can be had, unless
# SUITE_RELEASE names one. Prints where it is.
curl_source() {
    for release in ${SUITE_RELEASE:-$1}; do
        RELEASE=$release sh "$top/scripts/debian-source.sh" curl "$work" ${2:+"$2"} && return 0
    done
    return 1
}

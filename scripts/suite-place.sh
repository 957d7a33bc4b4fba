# Read by the scripts that run others' suites with haul: which haul it is, and where the suite is put. Sets top, haul and work.
#
#   HAUL=PATH            the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR        what is kept from one run to the next (a temporary directory otherwise)

top=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$top/target}
haul=${HAUL:-$target/release/haul}
[ -x "$haul" ] || haul=$target/debug/haul
[ -x "$haul" ] || { echo "haul is not built: cargo build --release -p httphaul-cli"; exit 2; }
haul=$(cd "$(dirname "$haul")" && pwd)/$(basename "$haul")

if [ -n "${SUITE_DIR:-}" ]; then
    mkdir -p "$SUITE_DIR"
    work=$(cd "$SUITE_DIR" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

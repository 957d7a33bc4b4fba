#!/bin/sh
# Installs each package of dist/ in a clean Debian root without Rust, runs a first job there, removes the package, and checks that
# nothing is left. The root is made by debootstrap once; each package gets it through an overlay. Nothing reaches another machine
# while packages are installed: all runs in a network namespace that has only loopback, with testkit's origin.
#
#   make dist-test                     tarball deb rpm wheel cpan image
#   make dist-test PACKAGES="foreign"  the aarch64 binary
#
# Needs root, debootstrap and iproute2; `foreign` qemu-user-static, `image` buildah. What is missing is named and left out.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
PACKAGES=${PACKAGES:-tarball deb rpm wheel cpan image}
SUITE=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
arch=${HOST%%-*}

[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && command -v ip >/dev/null || {
    echo "dist-test: needs root, debootstrap and ip (apt-get install debootstrap iproute2)" >&2
    exit 1
}

clean_root=$BUILD/root-$SUITE
if [ ! -e "$clean_root/complete" ]; then
    rm -rf "$clean_root"
    debootstrap --variant=minbase --include=ca-certificates,gcc,libc6-dev,libperl-dev,make,pkgconf,python3-venv,rpm \
        "$SUITE" "$clean_root" ${MIRROR:+"$MIRROR"} >"$BUILD/debootstrap.log" 2>&1 || {
        tail -n 20 "$BUILD/debootstrap.log" >&2
        exit 1
    }
    rm -rf "$clean_root"/var/cache/apt/archives/*.deb
    : >"$clean_root/complete"
fi

ORIGIN=${ORIGIN:-}
if [ -z "$ORIGIN" ]; then
    "$CARGO" build --locked -p testkit --bin origin
    ORIGIN=${CARGO_TARGET_DIR:-$ROOT/target}/debug/origin
fi

work=$(fresh dist-test)
export ORIGIN PACKAGES clean_root work arch
unshare --mount --net --propagation private sh packaging/dist-test-packages.sh

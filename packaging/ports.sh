#!/bin/sh
# What other systems build packages from: the Homebrew formula, the skeleton of an OpenBSD port, and the directory for a container image.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
[ -e "$DIST/haul-$VERSION.tar.gz" ] || sh packaging/source.sh
work=$(fresh ports)

sum=$(sha256sum "$DIST/haul-$VERSION.tar.gz" | cut -d ' ' -f 1)
sed -e "s/@VERSION@/$VERSION/g" -e "s/@SHA256@/$sum/g" packaging/homebrew/haul.rb.in >"$DIST/haul.rb"
if command -v ruby >/dev/null; then
    ruby -wc "$DIST/haul.rb" >/dev/null
fi

# The crates of the port, from Cargo.lock. Their sums and sizes are added by `make makesum` on OpenBSD.
mkdir "$work/haul"
cp -R packaging/openbsd/. "$work/haul"
sed "s/@VERSION@/$VERSION/g" packaging/openbsd/Makefile.in >"$work/haul/Makefile"
rm "$work/haul/Makefile.in"
awk -F '"' '/^name = / { name = $2 } /^version = / { version = $2 } /^source = / { printf "MODCARGO_CRATES +=\t%s\t%s\n", name, version }' \
    Cargo.lock >"$work/haul/crates.inc"
mkdir "$work/built"
install -m 755 /dev/null "$work/built/haul"
make -s install-command "BUILT=$work/built" "DESTDIR=$work/plist" PREFIX= "MANDIR=$work/plist/man"
(cd "$work/plist" && find . -mindepth 1 \( -type d -printf '%P/\n' -o -printf '%P\n' \)) | sort |
    sed -e 's|^bin/haul$|@bin &|' -e 's|^man/.*\.[17]$|@man &|' | grep -vE '^(bin|man|man/man1|man/man7|share|share/doc)/$' >"$work/haul/pkg/PLIST"
pack "$work" haul "$DIST/haul-$VERSION-openbsd-port.tar.gz"

# Needs the tarball of the processor, so it is made only where there is one.
for arch in $ARCHES; do
    tarball=$DIST/haul-$VERSION-$arch-linux-musl.tar.gz
    [ -e "$tarball" ] || continue
    image=haul-$VERSION-$arch-image
    mkdir "$work/$image"
    tar -xzf "$tarball" -C "$work/$image" --strip-components=2 "haul-$VERSION-$arch-linux-musl/bin/haul"
    tar -xzf "$tarball" -C "$work/$image" --strip-components=4 "haul-$VERSION-$arch-linux-musl/share/doc/haul/NOTICES"
    cp packaging/image/Dockerfile "$work/$image/Dockerfile"
    cp "${CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}" "$work/$image/ca-certificates.crt"
    pack "$work" "$image" "$DIST/$image.tar.gz"
done

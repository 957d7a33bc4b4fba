title="makepkg: sources by its DLAGENTS, one of them resumed"
source="deb makepkg
deb pacman-package-manager
deb libalpm13
deb libarchive-tools
deb fakeroot
deb libfakeroot"
hosts="archive.test"
serve() { printf 'content of the source' | put archive.test/source.txt; printf 'content of another' | put archive.test/part.txt; }
run() {
    useradd -m builder 2>/dev/null || { echo 'builder:x:991:991::/home/user:/bin/sh' >>/etc/passwd; }
    cat >PKGBUILD <<'P'
pkgname=thing
pkgver=1
pkgrel=1
arch=(any)
source=(http://archive.test/source.txt "other.txt::https://archive.test/part.txt")
sha256sums=(SKIP SKIP)
package() { install -Dm644 "$srcdir/source.txt" "$pkgdir/usr/share/thing"; }
P
    printf 'cont' >source.txt.part
    chown -R builder . 2>/dev/null || chown -R 991 .
    su builder -s /bin/bash -c 'cd /home/user && makepkg --nodeps --verifysource --noconfirm' 2>&1
    cat source.txt other.txt
}
mask='\(\w{3} \w{3} +\d+ \S+ \d{4}\)'

title="pacman -Sy with curl as its XferCommand"
source="deb pacman-package-manager
deb libalpm13
deb libarchive13"
hosts="mirror.test"
serve() {
    mkdir -p "$site/pack/thing-1-1"
    printf '%%FILENAME%%\nthing-1-1-any.pkg.tar.gz\n\n%%NAME%%\nthing\n\n%%VERSION%%\n1-1\n\n%%ARCH%%\nany\n' >"$site/pack/thing-1-1/desc"
    tar cf - -C "$site/pack" --mtime=@0 thing-1-1 | gzip -n | put mirror.test/core/core.db
}
run() {
    printf '[options]\nArchitecture = auto\nSigLevel = Never\nXferCommand = /usr/bin/curl -L -C - -f -o %%o %%u\n[core]\nServer = http://mirror.test/$repo\n' >conf
    mkdir -p db cache
    pacman --config conf --dbpath db --cachedir cache --noconfirm -Sy; pacman --config conf --dbpath db --cachedir cache -Ss thing; pacman --config conf --dbpath db --cachedir cache --noconfirm -Sw thing
}
skip_files='pacman.log'

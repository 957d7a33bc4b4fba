title="cabal update and get, with its transport curl"
source="deb cabal-install
deb libgmp10
deb libnuma1
deb libffi8"
hosts="hackage.test"
serve() {
    mkdir -p "$site/pack/thing/1.0" "$site/pack/thing-1.0"
    printf 'cabal-version: 1.12\nname: thing\nversion: 1.0\nbuild-type: Simple\nlibrary\n' | tee "$site/pack/thing-1.0/thing.cabal" >"$site/pack/thing/1.0/thing.cabal"
    tar cf - -C "$site/pack" --mtime=@1000000000 --format=ustar thing | gzip -n | put hackage.test/00-index.tar.gz
    tar cf - -C "$site/pack" --mtime=@1000000000 --format=ustar thing-1.0 | gzip -n | put hackage.test/package/thing-1.0.tar.gz
}
run() {
    printf 'repository hackage.test\n  url: http://hackage.test/\n  secure: False\nremote-repo-cache: /home/user/cache\nhttp-transport: curl\n' >conf
    for arguments in update 'get thing'; do cabal --config-file=/home/user/conf --http-transport=curl $arguments 2>&1; done; ls
}
skip_files='cache/|conf'

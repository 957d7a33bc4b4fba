title="ruby-build: a definition's archive, with mirror and checksum"
source="deb ruby-build"
hosts="cache.test archive.test"
serve() {
    mkdir -p "$site/pack/thing-1" && echo content >"$site/pack/thing-1/file"
    tar cf - -C "$site/pack" --mtime=@0 thing-1 | gzip -n | put archive.test/thing-1.tar.gz
    sum=$(sha256sum <"$site/archive.test/thing-1.tar.gz" | cut -c1-64)
    mkdir -p "$root/home/user"
    echo "install_package thing-1 http://archive.test/thing-1.tar.gz#$sum copy" >"$root/home/user/definition"
    printf 'HTTP/1.1 302 Found\nLocation: http://archive.test/thing-1.tar.gz\n\n' | put cache.test/$sum.http
}
run() {
    RUBY_BUILD_MIRROR_URL=http://cache.test RUBY_BUILD_CACHE_PATH=$PWD/cache TMPDIR=/home/user ruby-build definition /home/user/prefix
    mkdir cache
    RUBY_BUILD_SKIP_MIRROR=1 RUBY_BUILD_CACHE_PATH=$PWD/cache ruby-build definition /home/user/prefix2
}
mask='ruby-build\.\d+\.\d+\.?\w*|\d{14}\.\d+'

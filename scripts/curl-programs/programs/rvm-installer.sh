title="rvm-installer: a release's archive"
source="git rvm/rvm"
hosts="api.github.com github.com raw.githubusercontent.com get.rvm.io"
serve() {
    echo '[{"name": "1.29.12"}, {"name": "1.29.11"}]' | put api.github.com/repos/rvm/rvm/tags
    mkdir -p "$site/pack" && cp -r "$root/opt/rvm" "$site/pack/rvm-1.29.12"
    echo 1.29.12 >"$site/pack/rvm-1.29.12/VERSION"
    tar cf - -C "$site/pack" --mtime=@0 rvm-1.29.12 | gzip -n | put github.com/rvm/rvm/archive/1.29.12.tar.gz
    printf 'HTTP/1.1 404 Not Found\n\n' | put github.com/rvm/rvm/releases/download/1.29.12/1.29.12.tar.gz.asc.http
}
run() { bash /opt/rvm/binscripts/rvm-installer 1.29.12 --path /home/user/rvm --ignore-dotfiles 2>&1 | grep -v '^  *\*' | head -n 30; ls rvm/VERSION; }
skip_files='home/user/rvm|etc/'

title="di-netboot-assistant: an installer's archive with its sums"
source="deb di-netboot-assistant"
hosts="mirror.test"
serve() {
    mkdir -p "$site/pack/debian-installer/amd64"; echo kernel >"$site/pack/debian-installer/amd64/linux"
    tar cf - -C "$site/pack" --mtime=@0 . | gzip -n | put mirror.test/debian/dists/stable/main/installer-amd64/current/images/netboot/netboot.tar.gz
    (cd "$site/mirror.test/debian/dists/stable/main/installer-amd64/current/images" && sha256sum ./netboot/netboot.tar.gz >SHA256SUMS)
}
run() {
    mkdir -p /var/lib/tftpboot /srv/tftp /var/cache/di-netboot-assistant /var/lib/di-netboot-assistant
    sed -i 's,https://[^/]*/,https://mirror.test/,' /etc/di-netboot-assistant/di-sources.list
    di-netboot-assistant --verbose --ignore-sig install stable --arch=amd64 2>&1 | head -n 60
}
mask='\d{4}-\d\d-\d\d.*|fetch_date=.*'

title="approx: fetches for apt"
source="deb approx
deb libpcre3
deb libpcre2-8-0"
hosts="mirror.test"
serve() { echo 'Origin: Debian' | put mirror.test/debian/dists/stable/Release; printf 'index' | gzip -n | put mirror.test/debian/dists/stable/main/binary-amd64/Packages.gz; echo deb | put mirror.test/debian/pool/a.deb; }
run() {
    id approx >/dev/null 2>&1 || { echo 'approx:x:992:992::/var/cache:/bin/sh' >>/etc/passwd; echo 'approx:x:992:' >>/etc/group; }
    mkdir -p /var/cache/approx; chown 992:992 /var/cache/approx
    printf 'debian http://mirror.test/debian\n$user approx\n$group approx\n$syslog daemon\n$cache /var/cache/approx\n' >/etc/approx/approx.conf
    a=$(find /usr/sbin /usr/lib/approx -name approx -type f 2>/dev/null | head -n 1)
    for path in dists/stable/Release pool/a.deb pool/none.deb dists/stable/Release; do printf 'GET /debian/%s HTTP/1.1\r\nHost: localhost:9999\r\nConnection: close\r\n\r\n' "$path" | $a 2>&1 | grep -v '^Date'; done
}
mask='\w{3}, \d+ \w{3} \d{4} \S+'

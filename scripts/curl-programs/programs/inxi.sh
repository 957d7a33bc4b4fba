title="inxi: the address in the internet, by curl"
source="deb inxi"
hosts="smxi.org"
serve() { printf '203.0.113.5\n' | put smxi.org/opt/ip.php
}
run() {
    rm -f /usr/bin/dig; inxi -i -c 0 -z --alt 40 2>&1 | grep -i wan; inxi -i -c 0 --no-dig --alt 40 2>&1 | grep -i wan
}

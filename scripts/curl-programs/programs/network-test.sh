title="network-test (ifupdown-extra): checks of the web"
source="deb ifupdown-extra"
hosts="web.test ip.test geo.test"
serve() { echo hello | put web.test/index; echo 192.0.2.1 | put ip.test/index; echo '{"country":"CH"}' | put geo.test/json; }
run() {
    sed '/^# *Main/,$d' /usr/bin/network-test >functions
    CHECK_WEB_URL=http://web.test/ CHECK_WEB_MD5=$(echo hello | md5sum | cut -c1-32) CHECK_IP_URL=http://ip.test CHECK_IP6_URL=http://nowhere.test \
        CHECK_GEOIP_URL=https://geo.test/json bash -c '
        eval "$(sed -n "/^check_web_content ()/,/^}/p; /^check_ip_addr ()/,/^}/p; /^check_ip6_addr ()/,/^}/p; /^check_geoip_info ()/,/^}/p; /^clear_temp ()/,/^}/p" /usr/bin/network-test)"
        err() { echo "E: $*"; }; info() { echo "I: $*"; }; warn() { echo "W: $*"; }
        check_web_content; check_ip_addr; check_ip6_addr; check_geoip_info'
}
skip_files='functions'

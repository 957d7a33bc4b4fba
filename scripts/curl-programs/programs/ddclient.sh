title="ddclient: updates an address, through curl's --config"
source="deb ddclient"
hosts="dyn.test checkip.test"
serve() { echo '<p>203.0.113.5</p>' | put checkip.test/index; echo 'good 203.0.113.5' | put dyn.test/nic/update; }
run() {
    mkdir -p /var/cache/ddclient
    printf 'protocol=dyndns2\nuse=web, web=http://checkip.test/\nserver=dyn.test\nssl=yes\nlogin=me\npassword='"'"'se"cr\\et'"'"'\nhome.site.test\n' >/etc/ddclient.conf
    chmod 600 /etc/ddclient.conf
    ddclient -curl -daemon=0 -noquiet -verbose -file /etc/ddclient.conf -force
    ddclient -curl -daemon=0 -noquiet -file /etc/ddclient.conf -force -proxy localhost:80
}
mask='atime=.*|mtime=.*|last updated.*|\d{10}|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}|ddclient_\w+'

title="FireHOL's update-ipsets: lists by time and ETag"
source="deb firehol-tools
deb firehol-common
deb iprange"
hosts="lists.blocklist.de feodotracker.abuse.ch www.spamhaus.org ipinfo.io cinsscore.com"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return None if request["host"] == "none" else (200, [("Last-Modified", "Sat, 05 Nov 1994 08:49:37 GMT"), ("Content-Type", "text/plain")], b"192.0.2.1\n192.0.2.0/24\n")
P
}
run() {
    mkdir -p /etc/firehol/ipsets /home/user/.update-ipsets
    timeout 100 update-ipsets enable blocklist_de ciarmy feodo 2>&1 | tail -n 5
    timeout 100 update-ipsets run blocklist_de ciarmy feodo 2>&1 | grep -iE 'download|blocklist|ciarmy|feodo' | head -n 30
}
mask='\d\d:\d\d:\d\d|\d{10}|\d+ secs?|pid \d+'
skip_files='ipsets|log'

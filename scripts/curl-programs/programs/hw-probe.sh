title="hw-probe: uploads a probe"
source="deb hw-probe
deb libdigest-sha-perl
deb hwinfo"
hosts="linux-hardware.org"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [], b"Group ID: 1\nProbe URL: https://linux-hardware.org/?probe=1\n"
P
}
run() { rm -f /usr/share/perl5/LWP/UserAgent.pm; mkdir -p /root/HW_PROBE; hw-probe -get-group -email a@a.test 2>&1; hw-probe -get-inventory-id -email a@a.test 2>&1; }

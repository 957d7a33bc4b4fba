title="lynis: sends a report (its data upload)"
source="deb lynis"
hosts="lynis.test"
serve() {
    printf 'Response: OK\n' | put lynis.test/license/index.POST
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [], b"Response 100\nReady\n"
P
}
run() {
    mkdir -p /etc/lynis /var/log
    printf 'license-key=12345678-1234-1234-1234-123456789012\nupload=yes\nupload-server=lynis.test\n' >/etc/lynis/custom.prf
    printf 'hostid=%s\nhostid2=%s\n' 0123456789abcdef0123456789abcdef01234567 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef >/var/log/lynis-report.dat; echo finish=true >>/var/log/lynis-report.dat
    lynis upload-only
}
mask='\d\d:\d\d:\d\d|lynis_curl\.\w+'

title="dman: shows a manual page of Debian's server"
source="deb debian-goodies"
hosts="manpages.debian.org dyn.manpages.debian.org"
serve() {
    mkdir -p "$site/manpages.debian.org"
    cat >"$site/handler.py" <<'P'
def handle(request):
    import gzip
    return 200, [("Content-Type", "text/plain")], gzip.compress(b".TH LS 1\n.SH NAME\nls\n", mtime=0)
P
}
run() { dman ls; }

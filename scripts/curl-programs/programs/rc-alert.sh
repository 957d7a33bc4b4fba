title="rc-alert: release-critical bugs of installed packages"
source="deb devscripts
deb libfile-homedir-perl
deb libfile-which-perl"
hosts="udd.debian.org bugs.debian.org"
serve() {
    printf 'Package: bash\nBug: 123456\nTitle: breaks\nFlags: [     ] [ X ]\nDists: [ S T U ]\n' | put udd.debian.org/index
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [("Content-Type", "text/html")], b"<pre>\n<strong>Package:</strong> <a href=\"x\">bash</a> (1; 1)\n<a name=\"123456\">123456</a> [ ] breaks\n</pre>\n"
P
}
run() { rc-alert --cache; rc-alert -l bash; }

title="surfraw -dump: a page of a search engine"
source="deb surfraw
deb surfraw-extra"
hosts="duckduckgo.com www.debian.org packages.debian.org html.duckduckgo.com"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [("Content-Type", "text/html")], b"<p>result\n"
P
}
run() { surfraw -dump duckduckgo a b; surfraw -dump debpackages hello; }

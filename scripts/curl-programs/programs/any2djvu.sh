title="any2djvu: uploads a document"
source="deb djvulibre-bin"
hosts="any2djvu.djvu.org any2djvu.djvuzone.org"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [], b"<a href=djvu/1.djvu>\n"
P
}
run() { echo '%PDF' >a.pdf; DJVU_ONLINE_ACK=1 any2djvu -a a.pdf; DJVU_ONLINE_ACK=1 any2djvu -a -q a.pdf; }
mask='\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \w+ \d+'

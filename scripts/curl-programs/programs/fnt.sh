title="fnt: the list of fonts, and a font of Google's"
source="deb fnt"
hosts="ftp.debian.org deb.debian.org raw.githubusercontent.com github.com googlefonts.test screenshots.debian.net"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    import lzma
    if request["target"].endswith(".xz"):
        return 200, [], lzma.compress(b"Package: fonts-x\nVersion: 1\n\n")
    return 200, [("Content-Type", "text/html")], b'<a href="x">lato</a>\n<td><a href="Lato.ttf">Lato.ttf</a></td>\n'
P
}
run() {
    for tool in brew otfinfo chafa; do printf '#!/bin/sh\n' >/usr/local/bin/$tool; chmod 755 /usr/local/bin/$tool; done
    fnt update; fnt search x; fnt preview x; fnt install lato
}

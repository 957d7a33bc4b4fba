title="ytfzf: searches an Invidious server, thumbnails by -Z -K"
source="deb ytfzf
deb jq
deb libjq1
deb libonig5"
hosts="inv.test img.test"
unordered=1
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    if request["host"] == "img.test":
        return 200, [("Content-Type", "image/jpeg")], b"picture " + request["target"].encode()
    import json
    return 200, [("Content-Type", "application/json")], json.dumps([
        {"type": "video", "title": f"video {n}", "videoId": f"id{n}", "author": "a", "lengthSeconds": 5, "viewCount": 1, "publishedText": "now",
         "descriptionHtml": "", "videoThumbnails": [{"quality": "high", "url": f"https://img.test/{n}.jpg"}] * 6} for n in range(3)]).encode()
P
}
run() {
    printf '#!/bin/sh\nhead -n 1\n' >/usr/local/bin/fzf; chmod 755 /usr/local/bin/fzf
    for tool in mpv ueberzug; do printf '#!/bin/sh\necho "$0 $*"\n' >/usr/local/bin/$tool; chmod 755 /usr/local/bin/$tool; done
    mkdir -p .config/ytfzf; printf 'invidious_instance=https://inv.test\n' >.config/ytfzf/conf.sh
    timeout 60 ytfzf -a -A -t --async-thumbnails=0 -L hello 2>&1 || timeout 60 ytfzf -a -L hello 2>&1
}
mask='ytfzf-\w+|session-\w+|\d{4,}'
skip_files='search_hist'

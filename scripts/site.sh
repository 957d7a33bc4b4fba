#!/bin/sh
# Builds the guides as a site: scripts/site.sh TARGET. With --pictures, also takes a picture of a few
# pages at the width of a phone and of a desk, if Chromium is installed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
target=$1
venv=$target/venv
if [ ! -x "$venv/bin/mdbook" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --requirement "$root/scripts/site/requirements.txt"
fi
python3 "$root/scripts/site/build.py" "$root" "$target/book" "$venv/bin/mdbook"
[ "${2-}" = --pictures ] || exit 0
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "no pictures: Chromium is not installed" >&2
    exit 0
}
mkdir -p "$target/pictures"
for page in index many-pages troubleshooting design/tour; do
    for width in 390 1280; do
        # A browser window is at least 500 wide, but a frame in it may be narrower.
        frame=$target/pictures/frame.html
        printf '<body style="margin:0"><iframe src="file://%s/book/html/%s.html" style="border:0;width:%spx;height:900px"></iframe>' \
            "$target" "$page" "$width" > "$frame"
        "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
            --window-size="$width,900" --screenshot="$target/pictures/$(echo "$page" | tr / -)-$width.png" \
            "file://$frame" 2> /dev/null
    done
done
rm -f "$frame"
echo "pictures in $target/pictures"

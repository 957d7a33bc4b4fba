title="yt-dlp --downloader curl"
source="deb yt-dlp"
hosts="media.test"
serve() { head -c 300000 /dev/zero | put media.test/film.mp4; }
run() { /usr/bin/python3 /usr/bin/yt-dlp --downloader curl --downloader-args 'curl:--retry 2' -o film.mp4 --no-mtime https://media.test/film.mp4 2>&1 | tr '\r' '\n' | grep -v ETA; wc -c <film.mp4; }
mask='Chrome/[0-9.]+|in \d\d:\d\d:\d\d( at \S+)?|\d+\.\d+\w+/s|pid=\d+'

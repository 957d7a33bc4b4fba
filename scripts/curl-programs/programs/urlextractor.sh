title="urlextractor: collects what a site tells"
source="deb urlextractor"
hosts="ipinfo.io ip-api.com site.test www.spamcop.net www.site.test"
serve() {
    echo 127.0.0.1 | put ipinfo.io/ip
    echo success,Nowhere | put ip-api.com/csv/127.0.0.1
    printf 'HTTP/1.1 301 Moved\nLocation: http://www.site.test/\n\n' | put site.test/index.http
    echo '<a href="http://www.site.test/page">page</a> <a href="mailto:a@site.test">' | put www.site.test/index
    echo 'User-agent: *' | put www.site.test/robots.txt
}
run() {
    printf '#!/bin/sh\necho "$1 has address 127.0.0.1"\n' >/usr/local/bin/host; chmod 755 /usr/local/bin/host
    printf 'CURL_TIMEOUT=5\nCURL_UA=Mozilla/5.0\nINTERNAL=YES\nEXTERNAL=YES\n' >config
    mkdir -p /etc/urlextractor && cp config /etc/urlextractor/ 2>/dev/null
    echo | timeout 60 urlextractor http://site.test 2>/dev/null
}
mask='\d\d:\d\d:\d\d|\d+ seconds|\d\d-\w+-\d+|Logs? .*'

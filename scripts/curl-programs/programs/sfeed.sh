title="sfeed_update: feeds, one of them redirected"
source="deb sfeed"
hosts="feeds.test"
unordered=1
serve() {
    for feed in one two; do
        echo "<rss><channel><item><title>$feed</title><link>http://feeds.test/$feed/1</link></item></channel></rss>" | put feeds.test/$feed.xml
    done
    printf 'HTTP/1.1 302 Found\nLocation: /one.xml\n\n' | put feeds.test/moved.xml.http
}
run() {
    mkdir .sfeed
    printf 'feeds() {\nfeed one http://feeds.test/one.xml\nfeed two https://feeds.test/two.xml\nfeed moved http://feeds.test/moved.xml\nfeed none http://feeds.test/none.xml\n}\n' >.sfeed/sfeedrc
    sfeed_update 2>&1 | sed 's/^\[[^]]*\]//' | sort
    cat .sfeed/feeds/*
}
mask='\[\d\d:\d\d:\d\d\]'

title="umegaya-ddc-ping"
source="deb umegaya"
hosts="umegaya.test"
serve() { echo ok | put umegaya.test/umegaya/hello/ping; }
run() {
    mkdir -p /etc/umegaya
    printf 'ping_url: http://umegaya.test/umegaya\n' >/etc/umegaya/umegaya.conf
    echo 'Subject: Accepted hello 1-1' | umegaya-ddc-ping
}

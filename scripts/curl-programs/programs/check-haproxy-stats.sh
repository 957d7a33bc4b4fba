title="check_haproxy_stats (Nagios plug-in)"
source="deb monitoring-plugins-contrib"
hosts="balancer.test"
serve() {
    printf '# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,dreq,dresp,ereq,econ,eresp,wretr,wredis,status,\nweb,BACKEND,0,0,1,2,100,3,0,0,0,0,,0,0,0,0,UP,\n' |
        put 'balancer.test/haproxy;csv'
}
run() {
    rm -f /usr/share/perl5/LWP/Simple.pm
    /usr/lib/nagios/plugins/check_haproxy_stats -P web --url https://balancer.test/haproxy --user me --pass 'se cret' ||
    /usr/lib/nagios/plugins/check_haproxy_stats -u https://balancer.test/haproxy -U me -x secret
}

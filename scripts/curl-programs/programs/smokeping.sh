title="SmokePing: the probe Curl"
source="deb smokeping
deb libdigest-hmac-perl
deb libsnmp-session-perl"
hosts="site.test"
serve() { echo hello | put site.test/index; printf 'HTTP/1.1 302 Found\nLocation: http://site.test/\n\n' | put site.test/moved.http; }
run() {
    cat >probe.pl <<'P'
package Smokeping::probes::basefork; sub new { bless {}, shift } sub do_log { print "log: $_[1]\n" } sub do_debug { } sub pings { 2 } sub rounds_count { 1 }
$INC{"Smokeping/probes/basefork.pm"} = 1; $INC{"Smokeping/probes/passwordchecker.pm"} = 1;
package main;
require "/usr/share/perl5/Smokeping/probes/Curl.pm";
my $probe = bless { properties => { binary => "/usr/bin/curl", urlformat => "" } }, "Smokeping::probes::Curl";
eval { $probe->test_usage }; print "features: ", join(" ", sort keys %{ $probe->features }), "\n";
for my $case (["http://%host%/", "no", "hello"], ["https://%host%/moved", "yes", ""], ["http://%host%:81/", "no", ""]) {
    my $target = { addr => "site.test", vars => { urlformat => $case->[0], follow_redirects => $case->[1], expect => $case->[2],
        include_redirects => "no", require_zero_status => "yes", timeout => 5, agent => "probe/1", extraargs => "--header=X-A: b", extrare => "/;/" } };
    delete $target->{vars}{extraargs};
    my @times = $probe->pingone($target);
    print scalar(@times), " times\n";
}
P
    PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 perl probe.pl 2>/dev/null
}

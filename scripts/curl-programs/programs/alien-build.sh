title="Alien::Build: Fetch::CurlCommand"
source="deb libalien-build-perl
deb libpath-tiny-perl
deb libffi-checklib-perl
deb libcapture-tiny-perl
deb libfile-which-perl
deb libfile-chdir-perl
deb libsort-versions-perl"
hosts="dl.test"
serve() { echo content | put dl.test/thing-1.tar.gz; printf '<a href="thing-1.tar.gz">x</a>' | put dl.test/index.html; printf 'HTTP/1.1 302 Found\nLocation: /thing-1.tar.gz\n\n' | put dl.test/latest.http; }
run() {
    perl -MAlien::Build -MAlien::Build::Plugin::Fetch::CurlCommand -e '
        my $b = alienfile(); sub alienfile { require Alien::Build; my $m = Alien::Build->meta; "Alien::Build"->new }
        Alien::Build::Plugin::Fetch::CurlCommand->new(url => "http://dl.test/")->init($b->meta);
        for my $u ("http://dl.test/thing-1.tar.gz", "http://dl.test/index.html", "http://dl.test/latest", "http://dl.test/none") {
            my $r = eval { $b->fetch($u) }; print $r ? join("|", map { "$_=$r->{$_}" } grep { !/path|tmp/ } sort keys %$r) : "error: $@", "\n" }' 2>&1
}
mask='/home/user/\S+|[0-9a-f]{64}|\w{10}/'

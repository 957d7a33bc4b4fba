title="Perl's File::Fetch with curl"
source="installed perl"
hosts="files.test"
serve() { echo content | put files.test/a.txt; }
run() {
    perl -MFile::Fetch -e '$File::Fetch::BLACKLIST = [qw(lwp httptiny wget lynx httplite iosock fetch lftp)]; $File::Fetch::DEBUG = 0;
        for my $uri (qw(http://files.test/a.txt http://files.test/none)) { my $f = File::Fetch->new(uri => $uri); my $w = $f->fetch(to => "/home/user/d"); print $w ? "got $w\n" : "error\n" }'
}

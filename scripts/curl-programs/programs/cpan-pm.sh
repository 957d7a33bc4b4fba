title="CPAN.pm with curl for its files"
source="installed cpan"
hosts="cpan.test"
serve() {
    printf 'File: 02packages.details.txt\nDescription: x\nLine-Count: 1\nLast-Updated: Sun, 06 Nov 1994 08:49:37 GMT\n\nThing 1 A/AA/AAA/Thing-1.tar.gz\n' | gzip -n | put cpan.test/modules/02packages.details.txt.gz
    echo | gzip -n | put cpan.test/authors/01mailrc.txt.gz; printf 'File: 03modlist.data\n\npackage CPAN::Modulelist;\nsub data {{}}\n1;\n' | gzip -n | put cpan.test/modules/03modlist.data.gz
}
run() {
    mkdir -p .cpan/CPAN
    echo '$CPAN::Config = { build_dir => "/home/user/.cpan/build", cpan_home => "/home/user/.cpan", keep_source_where => "/home/user/.cpan/sources", curl => "/usr/bin/curl", wget => "", lynx => "", ncftpget => "", ncftp => "", ftp => "", gzip => "/bin/gzip", tar => "/bin/tar", urllist => ["http://cpan.test"], connect_to_internet_ok => 1, index_expire => 1, inhibit_startup_message => 1, pushy_https => 0, use_sqlite => 0, histfile => "", cache_metadata => 0, prerequisites_policy => "ignore", auto_commit => 0, dontload_list => ["LWP", "HTTP::Tiny", "Net::FTP"], dontload_hash => { "LWP" => 1, "LWP::UserAgent" => 1, "HTTP::Tiny" => 1, "CPAN::LWP::UserAgent" => 1, "Net::FTP" => 1, "CPAN::HTTP::Client" => 1 } }; 1;' >.cpan/CPAN/MyConfig.pm
    rm -f /usr/share/perl/5.*/HTTP/Tiny.pm /usr/share/perl5/LWP.pm /usr/share/perl5/LWP/UserAgent.pm
    perl -MCPAN -e 'CPAN::HandleConfig->load; $CPAN::Config->{dontload_hash}{"HTTP::Tiny"} = 1; CPAN::Shell->i("Thing")' 2>&1
}
mask='\d\d:\d\d:\d\d|\d{10}'
skip_files='FTPstats|\.lock'

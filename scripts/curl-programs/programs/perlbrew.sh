title="perlbrew: the list of perls, and patchperl"
source="deb perlbrew
deb libcapture-tiny-perl
deb libcpan-perl-releases-perl
deb libdevel-patchperl-perl
deb libmodule-pluggable-perl
deb libfile-pushd-perl
deb libpod-parser-perl
deb liblocal-lib-perl"
hosts="www.cpan.org raw.githubusercontent.com fastapi.metacpan.org cpan.metacpan.org"
serve() {
    echo '<a href="perl-5.36.0.tar.gz">perl-5.36.0.tar.gz</a>' | put www.cpan.org/src/5.0/index
    echo '<a href="perl-5.36.0.tar.gz">perl-5.36.0.tar.gz</a>' | put www.cpan.org/src/README.html
    printf '#!/usr/bin/perl\n' | put raw.githubusercontent.com/gugod/patchperl-packing/master/patchperl
    printf '#!/usr/bin/perl\n' | put raw.githubusercontent.com/miyagawa/cpanminus/master/cpanm
}
run() {
    export PERLBREW_ROOT=/home/user/perlbrew
    perlbrew init; perlbrew available; perlbrew install-cpanm; perlbrew install-patchperl; perlbrew download perl-5.36.0
}

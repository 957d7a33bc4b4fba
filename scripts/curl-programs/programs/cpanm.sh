title="cpanm: the archive of a distribution, with curl"
source="deb cpanminus"
hosts="cpan.test"
serve() {
    mkdir -p "$site/pack/Thing-1"
    echo 'use ExtUtils::MakeMaker; WriteMakefile(NAME => "Thing", VERSION => 1);' >"$site/pack/Thing-1/Makefile.PL"
    tar cf - -C "$site/pack" --mtime=@0 Thing-1 | gzip -n | put cpan.test/authors/id/A/AA/AAA/Thing-1.tar.gz
    printf 'File: 02packages.details.txt\n\nThing 1 A/AA/AAA/Thing-1.tar.gz\n' | gzip -n | put cpan.test/modules/02packages.details.txt.gz
}
run() {
    cpanm --no-lwp --no-wget --mirror http://cpan.test --mirror-only --local-lib /home/user/lib -v --notest Thing
    cpanm --no-lwp --no-wget --local-lib /home/user/lib --save-dists /home/user/dists --notest http://cpan.test/authors/id/A/AA/AAA/Thing-1.tar.gz
    cpanm --no-lwp --no-wget --local-lib /home/user/lib http://cpan.test/None-1.tar.gz
}
skip_files='\.cpanm|perllocal|\.packlist|lib/'
mask='work/\d+\.\d+|latest-build'

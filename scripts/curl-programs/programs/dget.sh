title="dget: a source package by its .dsc"
source="deb devscripts"
hosts="archive.test"
serve() {
    printf 'the source' | put archive.test/pool/hello_1.orig.tar.gz
    printf 'the packaging' | put archive.test/pool/hello_1-1.debian.tar.xz
    orig=$site/archive.test/pool/hello_1.orig.tar.gz debian=$site/archive.test/pool/hello_1-1.debian.tar.xz
    { printf 'Format: 3.0 (quilt)\nSource: hello\nBinary: hello\nArchitecture: any\nVersion: 1-1\nMaintainer: A <a@a.test>\nFiles:\n'
      for file in "$orig" "$debian"; do
          echo " $(md5sum <"$file" | cut -c1-32) $(wc -c <"$file") $(basename "$file")"
      done; } | put archive.test/pool/hello_1-1.dsc
}
run() { dget --allow-unauthenticated --download-only http://archive.test/pool/hello_1-1.dsc; dget -d -u http://archive.test/none.dsc; }

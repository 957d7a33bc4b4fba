title="rmadison: versions of a package in Debian"
source="deb devscripts"
hosts="api.ftp-master.debian.org qa.debian.org"
serve() {
    echo 'hello | 2.10-3 | stable | source, amd64' | put api.ftp-master.debian.org/madison
    printf 'HTTP/1.1 404 Not Found\nContent-Type: text/plain\n\nnone\n' | put qa.debian.org/madison.php.http
}
run() { rmadison -s stable hello; rmadison -u qa hello; }

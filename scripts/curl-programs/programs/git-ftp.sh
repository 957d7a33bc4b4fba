title="git-ftp: uploads a repository by FTP"
source="deb git-ftp"
run() {
    git init -q . && git config user.email a@a.test && git config user.name a && echo x >a && git add a && git commit -qm x
    git ftp init -u me -p secret ftp://localhost/site
}
skip_files='\.git/'

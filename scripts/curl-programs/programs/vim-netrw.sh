title="Vim: netrw and GetLatestVimScripts"
source="deb vim
deb vim-common
deb vim-runtime
deb libsodium23
deb libgpm2"
hosts="files.test www.vim.org"
serve() { echo content | put files.test/a.txt; }
run() { vim -u NONE -N -es -c 'set nocp' -c 'runtime plugin/netrwPlugin.vim' -c 'edit http://files.test/a.txt' -c 'write! copy' -c 'edit https://files.test/none' -c 'write! copy2' -c 'qall!' </dev/null; cat copy; }
skip_files='\.viminfo|netrwhist'

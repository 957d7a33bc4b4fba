title="gh-md-toc: the contents of a README, by GitHub's interface"
source="git ekalinin/github-markdown-toc"
hosts="api.github.com github.com raw.githubusercontent.com"
serve() {
    echo '<h1><a id="user-content-one" class="anchor" href="#one"></a>One</h1>' | put api.github.com/markdown/raw.POST
    echo '<h1><a id="user-content-one" class="anchor" href="#one"></a>One</h1>' | put github.com/a/b/index
}
run() { printf '# One\ntext\n' >README.md; bash /opt/github-markdown-toc/gh-md-toc README.md; bash /opt/github-markdown-toc/gh-md-toc https://github.com/a/b; }

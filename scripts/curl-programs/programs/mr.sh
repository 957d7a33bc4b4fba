title="mr bootstrap: a configuration by URL"
source="deb myrepos"
hosts="conf.test"
serve() { printf '[thing]\ncheckout = mkdir thing\n' | put conf.test/mrconfig; }
run() { mr --trust-all bootstrap https://conf.test/mrconfig .; mr --trust-all bootstrap https://localhost:444/none .; }

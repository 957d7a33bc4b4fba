title="checksec --update"
source="deb checksec"
hosts="github.com raw.githubusercontent.com"
serve() { echo '#!/bin/sh' | put raw.githubusercontent.com/slimm609/checksec.sh/master/checksec; }
run() { checksec --update; ls; }

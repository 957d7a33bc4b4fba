title="google-pprof: a profile of a running server"
source="deb google-perftools"
hosts="program.test"
serve() {
    printf 'heap profile:      1:       10 [     1:       10] @ heap_v2/524288\n     1:       10 [     1:       10] @ 0x401000 0x402000\n\nMAPPED_LIBRARIES:\n' |
        put program.test/pprof/heap
    echo /bin/program | put program.test/pprof/cmdline
    printf 'num_symbols: 1\n' | put program.test/pprof/symbol
    printf '0x401000\tmain\n0x402000\tstart\n' | put program.test/pprof/symbol.POST
}
run() { google-pprof --text http://program.test/pprof/heap; }
mask='pprof\d+|program\.\d+'

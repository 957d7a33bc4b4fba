# Tasks in a checkout of haul. `make` alone lists them.
#
#   make demo                         a first job against a local server, with its output checked
#   make test                         all checks that a change has to pass
#   make faults SEED=2                every fault, 1,000 kills, bodies up to 5 GiB
#   make bench                        every job with haul and its peers
#   make bench JOB=site ROUNDS=7      one job
#
# All targets share one target directory (CARGO_TARGET_DIR, or target/), so nothing is built twice.

CARGO        ?= cargo
PREFIX       ?= /usr/local
DESTDIR      ?=
LIBDIR       ?= lib
JOB          ?=
ROUNDS       ?=
BUDGET       ?=
FUZZ_SECONDS ?= 20
FUZZ_MINUTES ?= 30
TARGETS      ?=
SEED         ?= 1
# Generated command lines of curl-differential.
COUNT        ?= 1500
OFFSETS      ?= 100
KILLS        ?= 1000
URLS         ?= 10000000
REPLIES      ?= 10000
# The area and the share of `mutants`.
AREA         ?= proto
SHARE        ?= 1/50
MINUTES      ?= 10

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# What `install` takes: the directory of haul, libhaul_c.so and libhaul_c.a.
BUILT ?= $(TARGET_DIR)/release
# In CI, a lock file that does not match the manifests is an error.
LOCKED := $(if $(CI),--locked)
BINDIR := $(DESTDIR)$(PREFIX)/bin
DATADIR := $(DESTDIR)$(PREFIX)/share
DOCDIR := $(DATADIR)/doc/haul
MANDIR := $(DATADIR)/man

# Versions that the tests have run with. Spark needs Java.
ENGINES := 'ray[data]==2.60.0' pyspark==4.3.0 'dask[dataframe]==2026.8.0' polars==2.1.0 duckdb==2.0.1 pandas==3.1.1

.DEFAULT_GOAL := help
.PHONY: help build check-targets windows-test portable-test portable-slice bindings libhaul libcurl libcurl-suites perl perl-test \
	perl-soak lwp-suite mechanize-suite mojo-suite header c-memory tsan miri c-soak demo test setup fmt \
	libcurl-libtests fmt-check lint unit faults fault-tests faults-slice hostile hostile-slice torture purity \
	licences fuzz-check doc python python-test fsspec-suite httpx-suite aiohttp-suite engines-test engines-bench \
	python-soak bench fuzz-smoke instructions http-tiny-suite agent-kills job-kills job-memory tools bench-smoke \
	scorecard generate site dist dist-test install install-command install-lib uninstall clean msrv words h3-interop \
	selection-suites check-features link-targets pictures curl-programs curl-differential negotiate-suite httpsig-suite \
	selection-memory release-check public-suffixes mutants loom coverage soak fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Cargo unites the features of all packages in one invocation. The command haul is always built alone, as `cargo install` builds
# it, and the test servers in a second invocation. So nothing is compiled twice, and tests run the program that is shipped.
build: ## the optimised program: target/release/haul
	$(CARGO) build $(LOCKED) --release -p httphaul-cli --bin haul

# The programs bench, faults, hostile, and the test servers.
tools:
	$(CARGO) build $(LOCKED) --release -p httphaul-bench -p testkit --bins

bindings: libhaul perl python ## libhaul for C in target/capi, the Perl module in bindings/perl/blib, the Python module in target/py

# One build for both kinds of library, without the crate type `lib`, so that link-time optimisation covers all of it.
libhaul:
	$(CARGO) rustc $(LOCKED) --release -p httphaul-capi --lib --crate-type cdylib --crate-type staticlib
	sh scripts/libhaul.sh $(abspath $(TARGET_DIR))/release $(abspath $(TARGET_DIR))/capi $(abspath $(TARGET_DIR))/capi

# The version script libcurl.map needs a static library: docs/design/curl-abi.md.
libcurl: ## libcurl.so.4 over haul, in target/libcurl (use it by LD_LIBRARY_PATH)
	$(CARGO) rustc $(LOCKED) --release -p httphaul-curl --lib --crate-type staticlib
	sh scripts/libcurl.sh $(abspath $(TARGET_DIR))/release/libhaul_curl.a $(abspath $(TARGET_DIR))/libcurl

libcurl-suites: libcurl ## the tests of pycurl, WWW::Curl, PHP's and R's curl over that library (fetches their sources)
	sh scripts/libcurl-suites.sh

libcurl-libtests: libcurl tools ## curl's own tests of libcurl and its example programs over that library (fetches curl's source)
	sh scripts/libcurl-suites.sh libtests examples

# Without Perl's headers or a C compiler, prints so and succeeds. Use the result with perl -Mblib=bindings/perl.
perl: libhaul
	sh scripts/perl.sh build

perl-test: ## the tests of the Perl module
	sh scripts/perl.sh test

perl-soak: perl ## 200,000 requests in Perl; memory must stay flat
	cd bindings/perl && HAUL_REQUESTS=200000 prove -b t/21-memory.t

lwp-suite: perl ## LWP's own tests with haul for http and https (fetches libwww-perl's source package)
	sh scripts/lwp-suite.sh

mechanize-suite: perl ## WWW::Mechanize's own tests with haul for http and https (fetches its source)
	sh scripts/mechanize-suite.sh

mojo-suite: perl ## Mojolicious' own tests with HTTP::Haul::Promise below its user agent (fetches its source package)
	sh scripts/mojo-suite.sh

http-tiny-suite: perl ## HTTP::Tiny's own tests with HTTP::Haul in its place (fetches perl's source package)
	sh scripts/http-tiny-suite.sh

curl-programs: ## 68 programs that call curl, with curl and with haul in its place: PROGRAMS='nvm makepkg' (root; fetches them)
	sh scripts/curl-programs.sh $(PROGRAMS)

curl-differential: ## COUNT=1500 command lines made at random from curl's options, with curl and with haul: SEED=1 CURL=PATH
	sh scripts/curl-differential.sh $(SEED) $(COUNT)

httpsig-suite: build ## requests that haul signs by RFC 9421, verified by a Python package (installs it)
	sh scripts/httpsig-suite.sh $(TARGET_DIR)/release/haul

negotiate-suite: ## haul and Debian's curl with Kerberos tickets (installs a key distribution center and mod_auth_gssapi)
	sh scripts/negotiate-suite.sh

header: ## regenerate crates/capi/include/haul.h (needs cbindgen 0.28 or later)
	cd crates/capi && cbindgen -q --config cbindgen.toml --crate httphaul-capi --output include/haul.h .

# Runs the C programs of the tests under valgrind, and with AddressSanitizer and its leak check.
c-memory: ## the C interface under valgrind and AddressSanitizer
	sh scripts/c-memory.sh

# mdBook comes as a wheel: scripts/site/requirements.txt. `sh scripts/site.sh DIRECTORY --pictures` also takes pictures of pages.
site: ## the guides as a site in target/site/book/html, with each link and anchor checked (needs Python)
	sh scripts/site.sh $(abspath $(TARGET_DIR))/site

pictures: ## docs/pictures: terminals of real runs as SVG, which tests compare with the runs of today
	HAUL_PICTURES=1 $(CARGO) test $(LOCKED) -p httphaul-cli --test suite -- documentation_pictures::

msrv: ## check with the oldest toolchain that Cargo.toml promises (rustup installs it; 4 minutes and 1 GB)
	rustup run --install $$(sed -n 's/^rust-version = "\(.*\)"/\1.0/p' Cargo.toml) cargo check $(LOCKED) --workspace

tsan: ## the engine's thread tests under ThreadSanitizer (needs a nightly toolchain with rust-src)
	sh scripts/tsan.sh

mutants: ## changed lines that a test must notice: AREA=proto (policy, engine; tls, split, window, transfer), SEED=1, SHARE=1/50
	sh scripts/mutants.sh $(AREA) $(SEED) $(SHARE)

coverage: ## lines, regions and branches of proto and policy that their own tests run (needs nightly with llvm-tools)
	sh scripts/coverage.sh

# Writes bench/results/soak-DATE.json.
soak: build tools ## mixed load for MINUTES=10 against faulty servers; memory, descriptors and threads must stay flat (Python: make python)
	sh scripts/soak.sh $(MINUTES) $(SEED)

loom: ## every order of the steps of threads: the inbox of a worker, the memory budget and the task wakers of a batch
	$(CARGO) test $(LOCKED) --manifest-path loom/Cargo.toml --target-dir $(TARGET_DIR)/loom

miri: ## the unit tests of the C interface and of the parsers in Miri (needs a nightly toolchain with Miri)
	sh scripts/miri.sh

c-soak: ## 200,000 requests in C; memory must stay flat
	HAUL_C_SOAK=200000 $(CARGO) test $(LOCKED) -p httphaul-capi --test costs -- --nocapture memory_does_not_grow_with_requests

demo: ## build, serve 5,706 pages locally, fetch and extract them, check the output
	sh scripts/demo.sh

# From quick to slow. Each step is a target, so that you can run a failed one alone. Instruction counts depend on the processor
# and the C library, so a difference to the baseline does not fail the run.
test: ## all checks and tests, as CI runs them
	sh scripts/setup-tests.sh
	$(MAKE) fmt-check
	$(MAKE) purity
	$(MAKE) licences
	$(MAKE) lint
	$(MAKE) unit
	$(MAKE) portable-slice
	$(MAKE) bindings
	$(MAKE) perl-test
	$(MAKE) python-test
	$(MAKE) bench-smoke
	-$(MAKE) instructions
	$(MAKE) faults-slice
	$(MAKE) hostile-slice
	$(MAKE) doc
	$(MAKE) fuzz-check
	sh scripts/setup-tests.sh --missing

setup: ## install what the tests use besides Rust (as root; otherwise say what is missing)
	sh scripts/setup-tests.sh

fmt: ## format the sources
	$(CARGO) fmt --all

fmt-check:
	$(CARGO) fmt --all -- --check

lint: ## clippy over everything, warnings are errors
	$(CARGO) clippy $(LOCKED) --workspace --all-targets -- -D warnings

# Most of the tests' time is spent waiting for timers and for other programs, so twice as many run at a time as there are
# processors.
TEST_THREADS ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))

unit: ## unit, integration and doc tests of all crates
	RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test $(LOCKED) --workspace --no-fail-fast

faults: fault-tests build tools ## every fault: its tests, and its rows at OFFSETS=100 offsets, KILLS=1000, bodies up to 5 GiB, SEED=1 (some hours)
	$(TARGET_DIR)/release/faults --haul $(TARGET_DIR)/release/haul --seed $(SEED) --offsets $(OFFSETS) \
		--kills $(KILLS) --kill-body 24M --sizes 1,4.6M,13M,100M,1Gi,5Gi --slow-body 40M

fault-tests: ## the tests that docs/design/faults.md names, with a line for each fault
	sh scripts/fault-tests.sh

# One offset for each row, and a fixed seed, so that a failure can be repeated.
faults-slice: build tools ## `faults` in under a minute: one offset for each row, few kills, small bodies
	$(TARGET_DIR)/release/faults --haul $(TARGET_DIR)/release/haul --seed $(SEED) --offsets 1 \
		--kills 4 --sizes 1,4.6M,13M --quiet --json ''

# The servers of the library's test are thousands of threads in the same process. With a malloc arena for each, the peak of memory
# would be that of the servers.
hostile: build tools ## the command and the library against REPLIES=10000 malicious replies
	$(TARGET_DIR)/release/hostile --haul $(TARGET_DIR)/release/haul --seed $(SEED) --replies $(REPLIES)
	MALLOC_ARENA_MAX=1 HAUL_HOSTILE_REPLIES=$(REPLIES) $(CARGO) test $(LOCKED) -p httphaul --test hostile_replies -- --nocapture

hostile-slice: build tools ## the command against 400 malicious replies, in seconds
	$(TARGET_DIR)/release/hostile --haul $(TARGET_DIR)/release/haul --seed $(SEED) --replies 400 --json ''

torture: ## refuse each descriptor, thread and allocation of 60 command lines and 56 C cases in turn (some minutes)
	HAUL_TORTURE=all $(CARGO) test $(LOCKED) -p httphaul-capi --test torture -- --nocapture
	HAUL_TORTURE=all $(CARGO) test $(LOCKED) -p httphaul-cli --test torture -- --nocapture

agent-kills: ## kill -9 of the agent at random moments during 1,000 calls, all of which must succeed (make test: 60)
	HAUL_KILLS=1000 $(CARGO) test $(LOCKED) -p httphaul-cli --test suite -- downloads_complete_when_the_agent_is_killed

job-kills: ## kill -9 of jobs (--job) at KILLS=1000 random moments; nothing may be missing or twice (make test: 45)
	HAUL_JOB_KILLS=$(KILLS) HAUL_SEED=$(SEED) $(CARGO) test $(LOCKED) -p httphaul-cli --test suite -- job_kills::

job-memory: ## the memory of jobs with URLS=10000000 URLs, from a file and from a pipe: 64 MB (some 40 minutes, 8 GB of disk)
	HAUL_JOB_URLS=$(URLS) $(CARGO) test --release $(LOCKED) -p httphaul-cli --test suite -- job_memory:: --nocapture

selection-memory: ## the memory of --select and --select-json on pages and JSON lines of 1 GiB: 24 MB (some minutes)
	HAUL_SELECT_MIB=1024 $(CARGO) test --release $(LOCKED) -p httphaul-cli --test suite -- large_pages_are_selected --nocapture

selection-suites: ## html5lib's tokenizer tests and the JSONPath compliance suite (fetches both with git)
	LOCKED="$(LOCKED)" sh scripts/selection-suites.sh

# Writes bodies of 1 GiB to the directory for temporary files. The servers are those of the test http3_servers.
h3-interop: ## HTTP/3 with quic-go and Caddy: 1 GiB, 50 x 100 MB and 20,000 x 300 B over one connection (some minutes)
	sh scripts/setup-tests.sh
	HAUL_HTTP3_FULL=1 $(CARGO) test $(LOCKED) -p httphaul-cli --test suite -- --test-threads 1 http3_servers::

python: ## build the Python module and install it in a virtual environment: target/py
	sh scripts/test-python.sh build

python-test: ## the tests of the Python module, and those of requests
	sh scripts/test-python.sh

fsspec-suite: python ## fsspec's own tests with haul for http and https (fetches fsspec's repository with git): CHECKOUT=dir
	sh scripts/fsspec-suite.sh $(CHECKOUT)

httpx-suite: python ## httpx' own tests with haul's transports (fetches its source package)
	sh scripts/httpx-suite.sh

aiohttp-suite: python ## aiohttp's own tests of its client over AsyncSession (fetches its repository with git): CHECKOUT=dir
	sh scripts/aiohttp-suite.sh $(CHECKOUT)

engines-test: python ## 100,000 URLs in Ray and Spark, whose processes are killed; Dask, Polars, DuckDB, pandas; installs them all
	$(TARGET_DIR)/py/bin/python -m pip --quiet install $(ENGINES)
	HAUL_ENGINE_URLS=100000 HAUL_ENGINE_HOSTS=2000 HAUL_ENGINE_RATE=5 $(TARGET_DIR)/py/bin/python -m pytest \
		bindings/python/tests/test_engines.py bindings/python/tests/test_fsspec.py --rootdir bindings/python -p no:cacheprovider -s

engines-bench: python tools ## haul in Ray Data beside Ray's download, aiohttp and img2dataset's way: ARGUMENTS='--rows N --rounds N'
	$(TARGET_DIR)/py/bin/python -m pip --quiet install $(firstword $(ENGINES)) aiohttp
	$(TARGET_DIR)/release/bench engines $(ARGUMENTS)

python-soak: python ## 200,000 requests in Python, and as many with asyncio; memory must stay flat
	HAUL_REQUESTS=200000 $(TARGET_DIR)/py/bin/python -m pytest bindings/python/tests/test_memory.py --rootdir bindings/python \
		-p no:cacheprovider -s

purity: ## check the dependencies between the crates, and that the protocol crate is no_std
	sh scripts/check-dependencies.sh

check-targets: ## type-check the command and libhaul for macOS, the BSDs, musl, aarch64 and i686, and for Windows the Python module, too (rustup installs what is missing)
	sh scripts/check-targets.sh $(TARGETS)

link-targets: ## link the command for FreeBSD and macOS by zig from PyPI; nothing is run
	sh scripts/link-targets.sh $(TARGETS)

check-features: ## check the engine and the command with and without their optional parts
	LOCKED="$(LOCKED)" sh scripts/check-features.sh

# Where mingw or wine are missing, prints so and succeeds.
windows-test: ## haul.exe, built with mingw, under wine (builds it for Windows; 5 minutes)
	sh scripts/windows-test.sh

portable-test: ## the tests of the engine and the command with the code for systems other than Linux
	RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test $(LOCKED) -p httphaul -p httphaul-cli \
		--features httphaul/portable,httphaul-cli/portable --no-fail-fast

# Only the engine, the command and their two binaries of tests are built once more: the dependencies are those of `unit`, because
# Cargo unites the same features in them.
portable-slice: ## the part of `portable-test` that concerns files, pipes and the agent
	RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test $(LOCKED) --workspace --features httphaul/portable,httphaul-cli/portable --test suite -- \
		background_agent:: openbsd_ftp:: output_files:: partial_files:: splice_broken_connections:: \
		--skip downloads_complete_when_the_agent_is_killed

release-check: ## check versions, change logs, lock files and sums before a tag (.github/RELEASE_CHECKLIST.md)
	sh scripts/release-check.sh

licences: ## check the licences of all dependencies, list duplicate versions, and check that the public suffixes are psl's
	sh scripts/licences.sh
	sh scripts/public-suffixes.sh --check

words: ## count doc comments, test names and type names that break the rules of CONTRIBUTING.md
	sh scripts/words.sh

# A check links nothing, so libFuzzer is not built.
fuzz-check: ## check that the fuzz targets compile
	CUSTOM_LIBFUZZER_PATH=/nonexistent/libFuzzer.a \
		$(CARGO) check $(LOCKED) --manifest-path fuzz/Cargo.toml --bins --target-dir $(TARGET_DIR)/fuzz

doc: ## build the API documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(LOCKED) --workspace --no-deps

bench: ## the whole scorecard: table, bench/results, docs/benchmarks.md, charts, README; or one job: JOB=name ROUNDS=n
ifeq ($(JOB),)
	MAKE="$(MAKE)" BUDGET="$(BUDGET)" ROUNDS="$(ROUNDS)" sh scripts/bench.sh
else
	$(MAKE) build tools
	$(TARGET_DIR)/release/bench $(JOB) $(if $(ROUNDS),--rounds $(ROUNDS))
endif

bench-smoke: build tools ## haul alone in every job with tiny data, to check its output
	$(TARGET_DIR)/release/bench all --smoke

scorecard: tools ## docs/benchmarks.md, its charts and the README's figures from the newest whole run in bench/results
	$(TARGET_DIR)/release/bench scorecard

instructions: libhaul build tools ## compare instruction counts with bench/instructions.json (needs valgrind); UPDATE=1 rewrites it
	$(TARGET_DIR)/release/bench instructions $(if $(UPDATE),--update)

fuzz-smoke: ## run each fuzz target for FUZZ_SECONDS=20 (needs a nightly toolchain)
	FUZZ_SECONDS=$(FUZZ_SECONDS) sh scripts/fuzz-smoke.sh

fuzz: ## run each fuzz target for FUZZ_MINUTES=30, or those of TARGETS; figures to bench/results/fuzz-DATE.jsonl (nightly)
	FUZZ_MINUTES=$(FUZZ_MINUTES) FUZZ_TARGETS="$(TARGETS)" FUZZ_RESULT="$(abspath bench/results/fuzz-$(shell date +%F).jsonl)" \
		sh scripts/fuzz-smoke.sh

public-suffixes: ## regenerate policy's list of public suffixes from the crate psl of Cargo.lock
	sh scripts/public-suffixes.sh

# Generates from the table of flags. A test compares the files in the repository with it.
generate: ## regenerate the man page, the completions and docs/curl-compat.md
	$(CARGO) run $(LOCKED) -q -p httphaul-cli --bin haul -- --generate .

# The packages of docs/packaging.md. With REBUILD=1 everything is built a second time, from another directory, and must have the
# same bytes; without, only what follows the compiler is repeated.
dist: ## packages with sums and an SBOM in dist/: PARTS="source tarball deb rpm wheel cpan crates ports", ARCHES=x86_64, REBUILD=1
	sh packaging/dist.sh

dist-test: ## install each package of dist/ in a clean Debian root, run a first job there, remove it (needs root)
	sh packaging/dist-test.sh

# Installs the result of `make build`, because root often has no toolchain. Documents keep their layout, for their links.
install: install-command install-lib ## install haul, libhaul and their documentation under PREFIX (/usr/local), below DESTDIR

install-command: ## install haul without libhaul
	test -x $(BUILT)/haul || $(MAKE) build
	install -d $(BINDIR) $(DOCDIR)/docs/design $(DOCDIR)/docs/benchmarks $(DOCDIR)/docs/pictures
	install -m 755 $(BUILT)/haul $(BINDIR)/haul
	install -m 644 README.md SECURITY.md CONTRIBUTING.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE $(DOCDIR)
	install -m 644 docs/*.md docs/*.json docs/*.png $(DOCDIR)/docs
	install -m 644 docs/design/*.md $(DOCDIR)/docs/design
	install -m 644 docs/benchmarks/*.svg $(DOCDIR)/docs/benchmarks
	install -m 644 docs/pictures/*.svg $(DOCDIR)/docs/pictures
	install -d $(MANDIR)/man1 $(MANDIR)/man7 $(DATADIR)/bash-completion/completions $(DATADIR)/zsh/site-functions \
		$(DATADIR)/fish/vendor_completions.d
	install -m 644 docs/haul.1 docs/haul-curl.1 docs/haul-ftp.1 $(MANDIR)/man1
	install -m 644 docs/haul-recipes.7 $(MANDIR)/man7
	install -m 644 completions/haul.bash $(DATADIR)/bash-completion/completions/haul
	install -m 644 completions/_haul $(DATADIR)/zsh/site-functions/_haul
	install -m 644 completions/haul.fish $(DATADIR)/fish/vendor_completions.d/haul.fish
	install -m 644 completions/haul.ps1 $(DOCDIR)/haul.ps1

install-lib: ## install libhaul without the command
	test -f $(BUILT)/libhaul_c.a || $(MAKE) libhaul
	sh scripts/libhaul.sh $(abspath $(BUILT)) $(DESTDIR)$(PREFIX) $(PREFIX) $(LIBDIR)

uninstall: ## remove the installed files
	rm -f $(BINDIR)/haul $(DESTDIR)$(PREFIX)/include/haul.h $(DESTDIR)$(PREFIX)/include/haul.hpp
	rm -f $(DESTDIR)$(PREFIX)/$(LIBDIR)/libhaul.*
	rm -rf $(DESTDIR)$(PREFIX)/$(LIBDIR)/cmake/haul
	rm -f $(DESTDIR)$(PREFIX)/$(LIBDIR)/pkgconfig/haul.pc
	rm -rf $(DOCDIR)
	rm -f $(MANDIR)/man1/haul.1 $(MANDIR)/man1/haul-curl.1 $(MANDIR)/man1/haul-ftp.1 $(MANDIR)/man7/haul-recipes.7
	rm -f $(DATADIR)/bash-completion/completions/haul $(DATADIR)/zsh/site-functions/_haul \
		$(DATADIR)/fish/vendor_completions.d/haul.fish

clean: ## remove all build results
	$(CARGO) clean
	rm -rf fuzz/target bench/work

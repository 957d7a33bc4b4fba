# haul: what there is to do with a checkout. `make` alone lists it.
#
#   make demo                         the first job on an embedded origin, its answer checked
#   make test                         everything that must hold before a change lands
#   make faults SEED=2                haul through every fault, 1,000 kills, bodies up to 5 GiB
#   make bench                        haul and its peers in turn, every job
#   make bench JOB=site ROUNDS=7      one of them
#
# All targets share one target directory (CARGO_TARGET_DIR, or target/), so nothing is built twice.

CARGO        ?= cargo
PREFIX       ?= /usr/local
DESTDIR      ?=
JOB          ?=
ROUNDS       ?=
BUDGET       ?=
FUZZ_SECONDS ?= 20
SEED         ?= 1
OFFSETS      ?= 100
KILLS        ?= 1000
REPLIES      ?= 10000

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# In CI a lock file that does not fit the manifests is an error, not something to mend in passing.
LOCKED := $(if $(CI),--locked)
BINDIR := $(DESTDIR)$(PREFIX)/bin
DATADIR := $(DESTDIR)$(PREFIX)/share
DOCDIR := $(DATADIR)/doc/haul
MANDIR := $(DATADIR)/man/man1

.DEFAULT_GOAL := help
.PHONY: help build bindings libhaul perl perl-test perl-soak lwp-suite header c-memory tsan miri c-soak demo test setup fmt \
	fmt-check lint unit faults fault-tests faults-slice hostile hostile-slice torture purity licences fuzz-check doc \
	python python-test python-soak bench fuzz-smoke instructions http-tiny-suite agent-kills tools bench-smoke scorecard \
	generate install uninstall clean msrv words

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Cargo joins the features of all packages that one command names. So the command is always built by itself, as `cargo install`
# builds it and with what libhaul needs, and all that drives it by another: nothing of haul is compiled for one target and again for
# the next, and what is tested and measured is what is shipped.
build: ## haul, optimised: target/release/haul
	$(CARGO) build $(LOCKED) --release -p httphaul-cli --bin haul

# The drivers: bench, faults, hostile, origin and the other servers.
tools:
	$(CARGO) build $(LOCKED) --release -p httphaul-bench -p testkit --bins

bindings: libhaul perl python ## libhaul for C in target/capi, the Perl module in bindings/perl/blib, the Python module in target/py

# Both kinds of library in one build; without Cargo's `lib`, link-time optimisation goes through all of it.
libhaul:
	$(CARGO) rustc $(LOCKED) --release -p httphaul-capi --lib --crate-type cdylib --crate-type staticlib
	sh scripts/libhaul.sh $(abspath $(TARGET_DIR))/release $(abspath $(TARGET_DIR))/capi $(abspath $(TARGET_DIR))/capi

# Where Perl's headers or a C compiler are missing this says so, and does not fail. Usable as perl -Mblib=bindings/perl.
perl: libhaul
	sh scripts/perl.sh build

perl-test: ## the tests of the Perl module
	sh scripts/perl.sh test

perl-soak: perl ## 200,000 requests in Perl; memory must stay flat
	cd bindings/perl && HAUL_REQUESTS=200000 prove -b t/21-memory.t

lwp-suite: perl ## LWP's own tests with haul doing http and https (fetches libwww-perl's source package)
	sh scripts/lwp-suite.sh

http-tiny-suite: perl ## HTTP::Tiny's own tests with HTTP::Haul in its place (fetches perl's source package)
	sh scripts/http-tiny-suite.sh

header: ## make crates/capi/include/haul.h anew (needs cbindgen 0.28 or later)
	cd crates/capi && cbindgen -q --config cbindgen.toml --crate httphaul-capi --output include/haul.h .

# The C programs of the tests once under valgrind, once with ASan, its leak check included.
c-memory: ## the C interface under valgrind and AddressSanitizer
	sh scripts/c-memory.sh

msrv: ## check with the oldest toolchain that Cargo.toml promises (rustup installs it; 4 minutes and 1 GB)
	rustup run --install $$(sed -n 's/^rust-version = "\(.*\)"/\1.0/p' Cargo.toml) cargo check $(LOCKED) --workspace

tsan: ## the engine's tests of threads under ThreadSanitizer (needs a nightly toolchain with its sources)
	sh scripts/tsan.sh

miri: ## the unit tests of the C interface and of the parsers in Miri (needs a nightly toolchain with it)
	sh scripts/miri.sh

c-soak: ## 200,000 requests in C; memory must stay flat
	HAUL_C_SOAK=200000 $(CARGO) test $(LOCKED) -p httphaul-capi --test costs -- --nocapture memory_stays_flat

demo: ## build, serve the site of 5,706 pages on loopback, do the first job on it, check the answer
	sh scripts/demo.sh

# The order is from quick to slow; each step is a target of its own, so that a failed one can be run alone. Counts of
# instructions depend on the processor and the C library: away from where the baseline was made they tell and decide nothing.
test: ## all checks and tests, as CI runs them
	sh scripts/setup-tests.sh
	$(MAKE) fmt-check
	$(MAKE) purity
	$(MAKE) licences
	$(MAKE) lint
	$(MAKE) unit
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

unit: ## unit, integration and doc tests of all crates
	$(CARGO) test $(LOCKED) --workspace --no-fail-fast

faults: fault-tests build tools ## every fault: its tests; those of ranges at OFFSETS=100 places, KILLS=1000, bodies up to 5 GiB, SEED=1 (some hours)
	$(TARGET_DIR)/release/faults --haul $(TARGET_DIR)/release/haul --seed $(SEED) --offsets $(OFFSETS) \
		--kills $(KILLS) --kill-body 24M --sizes 1,4.6M,13M,100M,1Gi,5Gi --slow-body 40M

fault-tests: ## the tests that docs/design/faults.md names for each fault, and a line for each fault
	sh scripts/fault-tests.sh

# One place a row; the same seed every time, so that what fails here fails again.
faults-slice: build tools ## the same in under a minute: one place a row, a few kills, small bodies
	$(TARGET_DIR)/release/faults --haul $(TARGET_DIR)/release/haul --seed $(SEED) --offsets 1 \
		--kills 4 --sizes 1,4.6M,13M --quiet --json ''

# The library's servers are threads of the same process, thousands one after the other: with an arena for each, glibc keeps what they
# had, and its peak says nothing of the library's.
hostile: build tools ## the command and the library against REPLIES=10000 replies that no honest server sends
	$(TARGET_DIR)/release/hostile --haul $(TARGET_DIR)/release/haul --seed $(SEED) --replies $(REPLIES)
	MALLOC_ARENA_MAX=1 HAUL_HOSTILE_REPLIES=$(REPLIES) $(CARGO) test $(LOCKED) -p httphaul --test hostile_replies -- --nocapture

hostile-slice: build tools ## the same for the command in some seconds: 400 replies
	$(TARGET_DIR)/release/hostile --haul $(TARGET_DIR)/release/haul --seed $(SEED) --replies 400 --json ''

torture: ## each descriptor, thread and allocation of 60 command lines, and of 56 cases in C, refused one by one (some minutes)
	HAUL_TORTURE=all $(CARGO) test $(LOCKED) -p httphaul-capi --test torture -- --nocapture
	HAUL_TORTURE=all $(CARGO) test $(LOCKED) -p httphaul-cli --test torture -- --nocapture

agent-kills: ## kill -9 of the agent at random moments during 1,000 calls: each must come out right (make test does 60)
	HAUL_KILLS=1000 $(CARGO) test $(LOCKED) -p httphaul-cli --test suite -- killing_the_agent_fails_no_call

python: ## the Python module, installed in an environment of its own: target/py
	sh scripts/test-python.sh build

python-test: ## the same, and its tests
	sh scripts/test-python.sh

python-soak: python ## 200,000 requests in Python, and as many with asyncio; memory must stay flat
	HAUL_REQUESTS=200000 $(TARGET_DIR)/py/bin/python -m pytest bindings/python/tests/test_memory.py --rootdir bindings/python \
		-p no:cacheprovider -s

purity: ## who may depend on whom, and that the protocol crate is no_std
	sh scripts/purity.sh

licences: ## licences of all dependencies, and versions that are there twice
	sh scripts/licences.sh

words: ## for each crate: doc comments, test names and type names that CONTRIBUTING.md's rules do not allow, counted
	sh scripts/words.sh

# libFuzzer itself is not built for a check: nothing is linked.
fuzz-check: ## that the fuzz targets compile
	CUSTOM_LIBFUZZER_PATH=/nonexistent/libFuzzer.a \
		$(CARGO) check $(LOCKED) --manifest-path fuzz/Cargo.toml --bins --target-dir $(TARGET_DIR)/fuzz

doc: ## API documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(LOCKED) --workspace --no-deps

bench: ## the whole scorecard: table, bench/results, docs/benchmarks.md, charts, README; or one job: JOB=name ROUNDS=n
ifeq ($(JOB),)
	MAKE="$(MAKE)" BUDGET="$(BUDGET)" ROUNDS="$(ROUNDS)" sh scripts/bench.sh
else
	$(MAKE) build tools
	$(TARGET_DIR)/release/bench $(JOB) $(if $(ROUNDS),--rounds $(ROUNDS))
endif

bench-smoke: build tools ## haul alone in every job, everything tiny: only whether its answers are right
	$(TARGET_DIR)/release/bench all --smoke

scorecard: tools ## docs/benchmarks.md, its charts and the README's figures from the newest whole run in bench/results
	$(TARGET_DIR)/release/bench scorecard

instructions: libhaul build tools ## instructions of fixed cases against bench/instructions.json (needs valgrind); UPDATE=1 makes that anew
	$(TARGET_DIR)/release/bench instructions $(if $(UPDATE),--update)

fuzz-smoke: ## each fuzz target for FUZZ_SECONDS=20 (needs a nightly toolchain)
	FUZZ_SECONDS=$(FUZZ_SECONDS) sh scripts/fuzz-smoke.sh

# Made from the table of flags; a test holds the files that are checked in to it.
generate: ## the man page, the completions and docs/curl-compat.md, from the table of flags
	$(CARGO) run $(LOCKED) -q -p httphaul-cli --bin haul -- --generate .

# Root often has no toolchain: what `make build` left is installed as it is. The documents lie as they do here, for their links.
install: ## put haul, libhaul and their documentation under PREFIX (/usr/local), below DESTDIR
	test -x $(TARGET_DIR)/release/haul || $(MAKE) build
	install -d $(BINDIR) $(DOCDIR)/docs/design $(DOCDIR)/docs/benchmarks
	install -m 755 $(TARGET_DIR)/release/haul $(BINDIR)/haul
	install -m 644 README.md SECURITY.md CONTRIBUTING.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE $(DOCDIR)
	install -m 644 docs/*.md $(DOCDIR)/docs
	install -m 644 docs/design/*.md $(DOCDIR)/docs/design
	install -m 644 docs/benchmarks/*.svg $(DOCDIR)/docs/benchmarks
	test -f $(TARGET_DIR)/release/libhaul_c.a || $(MAKE) libhaul
	sh scripts/libhaul.sh $(abspath $(TARGET_DIR))/release $(DESTDIR)$(PREFIX) $(PREFIX)
	install -d $(MANDIR) $(DATADIR)/bash-completion/completions $(DATADIR)/zsh/site-functions \
		$(DATADIR)/fish/vendor_completions.d
	install -m 644 docs/haul.1 $(MANDIR)/haul.1
	install -m 644 completions/haul.bash $(DATADIR)/bash-completion/completions/haul
	install -m 644 completions/_haul $(DATADIR)/zsh/site-functions/_haul
	install -m 644 completions/haul.fish $(DATADIR)/fish/vendor_completions.d/haul.fish

uninstall: ## take away what install put there
	rm -f $(BINDIR)/haul $(DESTDIR)$(PREFIX)/include/haul.h $(DESTDIR)$(PREFIX)/lib/libhaul.*
	rm -f $(DESTDIR)$(PREFIX)/lib/pkgconfig/haul.pc
	rm -rf $(DOCDIR)
	rm -f $(MANDIR)/haul.1 $(DATADIR)/bash-completion/completions/haul $(DATADIR)/zsh/site-functions/_haul \
		$(DATADIR)/fish/vendor_completions.d/haul.fish

clean: ## remove everything that was built
	$(CARGO) clean
	rm -rf fuzz/target bench/work

# The verbs. Each installs by itself the Debian packages that it needs and that are missing.
.PHONY: bench build check check-deb check-pg clean crash deb failover fault-matrix format \
        fuzz-smoke install model model-deep power run sim sim-hunt sim-mutants tidy torture

build: # The program, optimised: build/idem
	@tools/build

run: # The program with a sandbox beside it, and curl lines to try
	@tools/build run
	@tools/run-demo

check: # Everything that must hold before a commit
	@tools/check

check-pg: # The suites api, race and crash on PostgreSQL, whole (test/README.md)
	@tools/install-deps check
	@tools/check-pg

failover: # A primary killed under load and its standby promoted, MINUTES=10 (test/failover/README.md)
	@tools/install-deps check
	@tools/failover '$(or $(MINUTES),10)' $(SEED)

fault-matrix: build # Five faults times operations times providers: a table (test/matrix/README.md)
	@tools/install-deps check
	@python3 test/matrix/matrix.py build/idem --table

crash: # Service, sandbox and callers killed at random under load, MINUTES=10 (test/crash/README.md)
	@tools/install-deps check
	@tools/crash '$(or $(MINUTES),10)' $(SEED)

tidy: # The part of check that reads the sources
	@tools/install-deps check
	@tools/tidy

model: # The models: each rule holds, each known mistake is found (models/README.md)
	@tools/install-deps model
	@tools/check-models

model-deep: # Likewise with three workers; four minutes on two quiet processors
	@tools/install-deps model
	@tools/check-models --deep

sim: # One simulated run of SEED=n (and STEPS=n), told line by line (sim/README.md)
	@tools/install-deps build
	@tools/sim one '$(SEED)' $(STEPS)

sim-hunt: # Fresh seeds for MINUTES=n; a failure prints the line that repeats it
	@tools/install-deps build
	@tools/sim hunt '$(or $(MINUTES),1)'

sim-mutants: # Mistakes that people make, planted one by one, are found (sim/mutants/README.md)
	@tools/install-deps check
	@tools/sim-mutants

power: # Loss of power under the real store, fresh seeds for MINUTES=n (test/power/README.md)
	@tools/install-deps check
	@tools/power '$(or $(MINUTES),1)'

format: # Rewrites the C sources in the one style
	@tools/install-deps check
	@find src include test sim bench examples -name '*.[ch]' -print0 | xargs -0 clang-format-14 -i

install: # What `make build` made, below $(DESTDIR)$(PREFIX); the library in $(LIBDIR) of it
	@DESTDIR='$(DESTDIR)' PREFIX='$(or $(PREFIX),/usr/local)' LIBDIR='$(or $(LIBDIR),lib)' \
		tools/install build

deb: build # A Debian package, in build/deb
	@tools/make-deb

check-deb: deb # The package on a clean Debian 12, as root; minutes, and needs a mirror
	@tools/check-deb build/deb/*.deb

bench: # What it does in a second, beside what the machine could do (bench/README.md)
	@tools/install-deps bench
	@tools/bench

fuzz-smoke: # New inputs for every fuzz target, SECONDS=60 each (test/fuzz/README.md)
	@tools/fuzz-smoke

torture: # The N-th failure of memory, disk, wire and SQLite, MINUTES=10 (test/torture/README.md)
	@MINUTES='$(or $(MINUTES),10)' tools/torture

clean:
	@rm -rf build build-asan build-tsan build-sim build-sim-coverage build-tidy build-bench \
		build-fuzz build-power build-torture

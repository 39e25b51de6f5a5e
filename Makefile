# The verbs. Each installs by itself the Debian packages that it needs and that are missing.
.PHONY: build run check format tidy clean

build: # The program, optimised: build/idem
	@tools/build

run: # The program with a sandbox beside it, and curl lines to try
	@tools/build run
	@tools/run-demo

check: # Everything that must hold before a commit
	@tools/check

tidy: # The part of check that reads the sources
	@tools/install-deps check
	@tools/tidy

format: # Rewrites the C sources in the one style
	@tools/install-deps check
	@find src include test sim bench -name '*.[ch]' -print0 | xargs -0 clang-format-14 -i

clean:
	@rm -rf build build-asan build-tsan

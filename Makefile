# Everything that a fresh machine needs is set up by the targets themselves: Python packages into .venv, Prometheus into .tools.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -name '*.c' -o -name '*.h' -o -name CMakeLists.txt -o -name '*.py')
export PATH := $(CURDIR)/.tools/usr/bin:$(PATH)

.PHONY: demo test test-long lint test-native test-python bench fuzz tools clean

demo: $(VENV)/.installed
	$(BIN)/opstreamd demo

# ---- set-up ----

# A C compiler and Python's headers (and what TOOLS names, as program:package,…) come from the system; as root they are installed where
# they are missing.
tools:
	@missing=; \
	for tool in gcc:gcc,libc6-dev $(TOOLS); do command -v $${tool%%:*} >/dev/null || missing="$$missing $$(echo $${tool#*:} | tr , ' ')"; done; \
	$(PYTHON) -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || missing="$$missing python3-dev"; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing="$$missing python3-venv"; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	  else echo "missing:$$missing (install them, e.g. sudo apt-get install$$missing)" >&2; exit 1; fi; \
	fi

$(VENV)/bin/pip: | tools
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(NATIVE) | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

# Prometheus and promtool from Debian's package, unpacked, not installed: no service is started.
.tools/usr/bin/promtool:
	mkdir -p .tools/packages
	if [ "$$(id -u)" = 0 ]; then apt-get update -qq; fi
	cd .tools/packages && apt-get download -qq prometheus && dpkg -x prometheus_*.deb ..
	touch $@

# ---- tests ----

# Some of the programs that they serve models with are in C++.
test test-python test-long: TOOLS = g++:g++

test: lint test-native test-python

# Longer than a minute each: the whole-process tests on the sanitised engine, a minute of a real Prometheus.
test-long: tools $(VENV)/.tested .tools/usr/bin/promtool $(VENV)-address/.installed
	$(BIN)/python -m pytest -m long
	LD_PRELOAD=$$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 $(VENV)-address/bin/python -m pytest -m 'not long' tests/e2e tests/integration

lint: $(VENV)/.tested
	$(BIN)/ruff check daemon tests native && $(BIN)/ruff format --check daemon tests native
	$(BIN)/mypy
	@$(BIN)/clang-format --dry-run --Werror $(filter-out %/histogram_bounds.h,$(filter %.c %.h,$(NATIVE))) $(wildcard tests/apps/*.c tests/apps/*.cc)

test-native: $(VENV)/.tested
	for sanitizer in address thread; do \
	  $(BIN)/cmake -S native -B build/$$sanitizer -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DOPSTREAM_SANITIZE=$$sanitizer && \
	  $(BIN)/cmake --build build/$$sanitizer && \
	  $(BIN)/ctest --test-dir build/$$sanitizer --output-on-failure --no-tests=error || exit 1; \
	done

test-python: tools $(VENV)/.tested .tools/usr/bin/promtool
	$(BIN)/python -m pytest -m 'not long'

# The same package with the engine and the simulator built under ASan and UBSan, in an environment of its own.
$(VENV)-address/.installed: pyproject.toml $(NATIVE) $(shell find daemon -name '*.py') | tools
	test -d $(VENV)-address || $(PYTHON) -m venv $(VENV)-address
	$(VENV)-address/bin/pip install --quiet --force-reinstall --no-deps -C cmake.define.OPSTREAM_SANITIZE=address -C build-dir=build/address-wheel .
	$(VENV)-address/bin/pip install --quiet '.[test]' -C cmake.define.OPSTREAM_SANITIZE=address -C build-dir=build/address-wheel
	touch $@

# ---- measuring and fuzzing ----

bench: TOOLS = valgrind:valgrind
bench: tools $(VENV)/.tested
	$(BIN)/cmake -S native -B build/release -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_BUILD_TYPE=Release
	$(BIN)/cmake --build build/release
	$(BIN)/python tests/bench/bench.py build/release

# FUZZ_SECONDS for each target, with clang's libFuzzer.
FUZZ_SECONDS ?= 600
fuzz: TOOLS = clang:clang,libclang-rt-14-dev
fuzz: tools $(VENV)/.tested
	$(BIN)/cmake -S native -B build/fuzz -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_C_COMPILER=clang
	$(BIN)/cmake --build build/fuzz --target fuzzers
	for noun in segment message; do \
	  mkdir -p build/corpus/$$noun; \
	  build/fuzz/fuzz/$${noun}_fuzz -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/corpus/ \
	    build/corpus/$$noun build/fuzz/fuzz/corpus/$$noun build/fuzz/fuzz/seeds/$$noun || exit 1; \
	done

clean:
	rm -rf build dist $(VENV) $(VENV)-address .tools

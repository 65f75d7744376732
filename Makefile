# Two commands do everything on a fresh Debian 12, as root or with sudo: `make run`, `make test`.

RELEASE     := build/release
CHECKPOINTS := build/checkpoints
FIXTURES    := fixtures/gemma-4
PREFIX      ?= /usr/local
JOBS        ?= $(shell nproc)
FUZZ_SECONDS ?= 60
# Rooms whose tests run under the address sanitizer, and those that run threads against each other.
ASAN_ROOMS  ?= core io http quant format store model analysis report app cli grid_check
TSAN_ROOMS  ?= core io http store model analysis app grid_check
empty :=
space := $(empty) $(empty)

BUILD := cmake --build --parallel $(JOBS) --preset
CTEST := ctest --output-on-failure --parallel $(JOBS)

# $(call test_rooms,PRESET,ROOMS): builds the tests of these rooms alone, and runs them.
define test_rooms
$(BUILD) $(1) --target $(addsuffix _test,$(2))
$(CTEST) --test-dir build/$(1) --label-regex '^($(subst $(space),|,$(strip $(2))))$$'
endef

.PHONY: help run test bench fuzz check format-check tidy asan tsan venv install clean
.DEFAULT_GOAL := help

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16
	@echo 'JOBS=N compiles and tests N at a time ($(JOBS)).'

run: ## install what is missing, build, inspect and check the fixtures (offline)
	.ci/packages install build test
	cmake --preset release
	$(BUILD) release --target gridscope sparse_checkpoint tiny_gemma
	$(RELEASE)/tests/support/sparse_checkpoint $(wildcard $(FIXTURES)/*/) $(CHECKPOINTS)
	$(RELEASE)/src/cli/gridscope inspect $(CHECKPOINTS)/E2B-bf16
	$(RELEASE)/tests/support/tiny_gemma $(CHECKPOINTS)/tiny
	$(RELEASE)/src/cli/gridscope inspect $(CHECKPOINTS)/E2B-w4a16
	$(RELEASE)/src/cli/gridscope grid-check $(addprefix $(CHECKPOINTS)/tiny/,source w4a16-ct awq gptq gguf mlx)

test: ## install what is missing, build, run the whole default test suite
	.ci/packages install build test
	cmake --preset release
	$(BUILD) release
	$(CTEST) --test-dir $(RELEASE) --label-exclude perf

bench: ## print the speed figures with their goals
	.ci/packages install build test
	cmake --preset release
	$(BUILD) release --target gridscope gridscope_bench
	$(RELEASE)/tests/bench/gridscope_bench $(BENCH_ARGUMENTS)

fuzz: ## run each fuzz target for FUZZ_SECONDS (60)
	.ci/packages install build test fuzz
	cmake --preset fuzz
	$(BUILD) fuzz --target fuzzers
	tests/fuzz/run.sh build/fuzz/tests/fuzz $(FUZZ_SECONDS)

check: format-check tidy asan tsan ## formatting, clang-tidy, tests under the sanitizers

format-check:
	.ci/packages install check
	find include src tests -name '*.[ch]pp' -print0 | xargs -0 clang-format-19 --dry-run --Werror

tidy:
	.ci/packages install build test check
	cmake --preset tidy
	$(BUILD) tidy --target gridscope

asan:
	.ci/packages install build test
	cmake --preset asan
	$(call test_rooms,asan,$(ASAN_ROOMS))

tsan:
	.ci/packages install build test
	cmake --preset tsan
	$(call test_rooms,tsan,$(TSAN_ROOMS))

venv: ## fetch the reference libraries from PyPI, for the conformance tests
	.ci/packages install conformance
	tests/conformance/make_venv.sh build/venv

# In a directory of its own, where no tests are built.
install: ## install the release build below PREFIX (/usr/local)
	.ci/packages install build
	cmake --preset release -B build/install -D GRIDSCOPE_TESTS=OFF -D GRIDSCOPE_BENCH=OFF
	cmake --build build/install --parallel $(JOBS)
	cmake --install build/install --prefix $(PREFIX)

clean: ## remove everything that was built
	rm -rf build

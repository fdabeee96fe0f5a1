# Everything a developer runs. From a bare clone, `make test` alone is enough: each target first brings
# .venv up to date, which costs nothing when it already is.

PYTHON ?= python3
SHELL  := bash

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# JAX, its libraries, Keras and statsmodels: in .venv they would make every install and every test longer.
FRAMEWORKS := .venv-frameworks

# Ray and Dask, for the same reason.
ENGINES := .venv-engines

# The demo needs little. Where .venv is there already, with all that development needs, the demo takes that.
DEMO := $(if $(wildcard $(STAMP)),$(VENV),.venv-demo)

.DEFAULT_GOAL := help
.PHONY: help install install-frameworks install-engines demo test test-browser test-frameworks test-engines test-data \
	reproduce docs bench bench-long bench-docs format clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' Makefile | while IFS='|' read -r name what; do \
		printf '%-18s%s\n' "$$name" "$$what"; done
	@echo 'PYTHON=... chooses the interpreter for the environments (3.11 or newer).'

install: $(STAMP) ## create or update .venv with all that development needs

# Found at the start, the file .installing in an environment means that an earlier install was cut off half-way, and
# the environment is built anew rather than trusted: it lies there from the first change to the last. When pip itself
# reports a failure, it has left the environment as it was, so the file goes and the next call resumes.
#
# torch goes first, at its exact version: asked for as a range it may bring another build. The build
# back end comes from constraints.txt as well, hence no build isolation.
#
# $(call make-environment,folder,file of constraints,extra)
define make-environment
	@set -euo pipefail; \
	trap 'exit 130' INT TERM HUP; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'smoothlime needs Python 3.11 or newer: make install PYTHON=python3.11' >&2; exit 1; }; \
	if [ -e $(1)/.installing ] || ! $(1)/bin/python -m pip --version > /dev/null 2>&1; then \
		rm -rf $(1); mkdir $(1); touch $(1)/.installing; \
		$(PYTHON) -m venv $(1); \
	fi; \
	touch $(1)/.installing; rm -f $(1)/.installed; \
	get() { \
		$(1)/bin/python -m pip install --quiet --disable-pip-version-check -c $(2) "$$@" \
			2> >(sed '/Location .* is ignored/d' >&2) && return; \
		status=$$?; if [ $$status -le 2 ]; then rm -f $(1)/.installing; fi; exit $$status; \
	}; \
	echo 'Installing into $(1); the first time takes a few minutes.'; \
	get "$$(grep '^torch==' constraints.txt)" hatchling editables; \
	get --no-build-isolation -e '.[$(3)]'; \
	touch $(1)/.installed; \
	rm -f $(1)/.installing
endef

$(STAMP): pyproject.toml constraints.txt
	$(call make-environment,$(VENV),constraints.txt,dev)

# torch, matplotlib for the picture, and scikit-learn, which has the data
.venv-demo/.installed: pyproject.toml constraints.txt
	$(call make-environment,.venv-demo,constraints.txt,paper)

install-frameworks: $(FRAMEWORKS)/.installed ## create or update .venv-frameworks, for test-frameworks

$(FRAMEWORKS)/.installed: pyproject.toml constraints.txt constraints-frameworks.txt
	$(call make-environment,$(FRAMEWORKS),constraints-frameworks.txt,frameworks)

install-engines: $(ENGINES)/.installed ## create or update .venv-engines, for test-engines

$(ENGINES)/.installed: pyproject.toml constraints.txt constraints-engines.txt
	$(call make-environment,$(ENGINES),constraints-engines.txt,engines)

demo: $(DEMO)/.installed ## explain a small model and print the result; installs only what that needs
	$(DEMO)/bin/python examples/demo.py

test: install ## all checks: format, lint, types, tests and doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	# a processor for each worker: more threads would wait for each other; finding no test at all is exit status 5, a failure
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

# One run for each library that Keras runs on, as a process has one; the first has all else as well.
test-frameworks: $(FRAMEWORKS)/.installed ## tests with JAX, Equinox, Flax and Keras, in an environment of their own
	@set -euo pipefail; export OPENBLAS_NUM_THREADS=1; \
	run() { echo "== Keras on $$1"; KERAS_BACKEND=$$1 $(FRAMEWORKS)/bin/python -m pytest "$${@:2}"; }; \
	run jax tests/frameworks; \
	run torch tests/frameworks/test_keras.py tests/frameworks/test_page.py; \
	run numpy tests/frameworks/test_keras.py tests/frameworks/test_page.py

# A test that waits for ever fails after two minutes.
test-engines: $(ENGINES)/.installed ## tests of big tables on Ray and Dask, in an environment of their own
	OPENBLAS_NUM_THREADS=1 $(ENGINES)/bin/python -m pytest --timeout 120 tests/engines

# Where there is no Chromium, apt gets one: twice, as mirrors fail now and then. CHROMIUM=path takes another.
test-browser: install ## tests of pages in a headless Chromium, which apt installs where there is none
	@set -euo pipefail; has() { [ -n "$${CHROMIUM:-}" ] || command -v chromium > /dev/null || \
		command -v chromium-browser > /dev/null; }; \
	as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	get() { $$as_root apt-get update -qq && $$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq chromium > /dev/null; }; \
	has || get || { sleep 5; get; } || { echo 'no Chromium: install one, or name it with CHROMIUM=path' >&2; exit 1; }
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile tests/browser

test-data: install ## tests on the real data files of the paper; fails unless SMOOTHLIME_DATA names their folder
	$(BIN)/python -m pytest tests/data

reproduce: install ## redo the paper's figures, test its claims, write report/index.html; half an hour
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/smoothlime reproduce --out report

# One file that draws formulas as SVG and brings its own glyphs, so that the pages need no network.
MATHJAX := docs/_vendor/tex-svg.js
$(MATHJAX):
	@command -v npm > /dev/null || { echo 'make docs fetches MathJax with npm: install Node.js' >&2; exit 1; }
	@set -euo pipefail; mkdir -p $(@D); scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	npm pack --silent --pack-destination "$$scratch" mathjax@3.2.2 > /dev/null; \
	tar -xzf "$$scratch"/mathjax-3.2.2.tgz -C "$$scratch" package/es5/tex-svg.js; \
	mv "$$scratch/package/es5/tex-svg.js" $@

docs: install $(MATHJAX) ## build the documentation; a warning is an error
	$(BIN)/sphinx-build -E -W --keep-going -b html docs docs/_build/html # -E: no page is taken from an earlier build

BENCH := error latency memory overhead scaling stability startup time trees
LONG  := alternatives certificates controls coverage designs gaps nets intervals radius scales stopping tables

bench: install ## run the benchmarks on one thread: a quarter of an hour
	@set -euo pipefail; $(call run-benchmarks,$(BENCH))

bench-long: install ## run the benchmarks that take longer: intervals, stopping, certificates, alternatives
	@set -euo pipefail; $(call run-benchmarks,$(LONG))

bench-docs: install ## put the results of the benchmarks into README.md and docs/
	$(BIN)/python benchmarks/into_docs.py
	$(BIN)/python benchmarks/charts.py

# time reads the results of error, and comes after it
define run-benchmarks
SECONDS=0; for name in $(1); do echo "== benchmarks/bench_$$name.py"; before=$$SECONDS; \
	$(BIN)/python "benchmarks/bench_$$name.py"; echo "== $$((SECONDS - before)) s"; done; \
	echo "== $$SECONDS s in all"
endef

format: install ## reformat, and fix what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what was built, and the environments
	rm -rf $(VENV) $(FRAMEWORKS) $(ENGINES) .venv-demo build dist docs/_build docs/_vendor .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests docs examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true

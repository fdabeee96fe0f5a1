# Everything a developer runs. From a bare clone, `make test` alone is enough: each target first brings
# .venv up to date, which costs nothing when it already is.

PYTHON ?= python3
SHELL  := bash

VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
PENDING := $(VENV)/.installing

.DEFAULT_GOAL := help
.PHONY: help install demo test test-data reproduce docs bench bench-long bench-docs format clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' Makefile | while IFS='|' read -r name what; do \
		printf '%-18s%s\n' "$$name" "$$what"; done
	@echo 'PYTHON=... chooses the interpreter for .venv (3.11 or newer).'

install: $(STAMP) ## create or update .venv with all that development needs

# $(PENDING) lies in .venv from the first change to the last. Found at the start, it means that an
# earlier install was cut off half-way, and .venv is built anew rather than trusted. When pip itself
# reports a failure, it has left the environment as it was, so the marker goes and the next call resumes.
#
# torch goes first, at its exact version: asked for as a range it may bring another build. The build
# back end comes from constraints.txt as well, hence no build isolation.
$(STAMP): pyproject.toml constraints.txt
	@set -euo pipefail; \
	trap 'exit 130' INT TERM HUP; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'smoothlime needs Python 3.11 or newer: make install PYTHON=python3.11' >&2; exit 1; }; \
	if [ -e $(PENDING) ] || ! $(BIN)/python -m pip --version > /dev/null 2>&1; then \
		rm -rf $(VENV); mkdir $(VENV); touch $(PENDING); \
		$(PYTHON) -m venv $(VENV); \
	fi; \
	touch $(PENDING); rm -f $(STAMP); \
	get() { \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$@" \
			2> >(sed '/Location .* is ignored/d' >&2) && return; \
		status=$$?; if [ $$status -le 2 ]; then rm -f $(PENDING); fi; exit $$status; \
	}; \
	echo 'Installing into $(VENV); the first time takes a few minutes.'; \
	get "$$(grep '^torch==' constraints.txt)" hatchling editables; \
	get --no-build-isolation -e '.[dev]'; \
	touch $(STAMP); \
	rm -f $(PENDING)

demo: install ## explain a small model and print the result
	$(BIN)/python examples/demo.py

test: install ## all checks: format, lint, types, tests and doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	# a processor for each worker: more threads would wait for each other; finding no test at all is exit status 5, a failure
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

test-data: install ## tests on the real data files of the paper; fails unless SMOOTHLIME_DATA names their folder
	$(BIN)/python -m pytest tests/data

reproduce: install ## redo the paper's figures, test its claims, write report/index.html; half an hour
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/smoothlime reproduce --out report

docs: install ## build the documentation; a warning is an error
	$(BIN)/sphinx-build -E -W --keep-going -b html docs docs/_build/html # -E: no page is taken from an earlier build

BENCH := error latency memory overhead scaling stability startup time trees
LONG  := alternatives certificates controls coverage designs gaps nets intervals radius scales stopping

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

clean: ## remove what was built, and .venv
	rm -rf $(VENV) build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests docs examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true

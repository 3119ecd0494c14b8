# What a developer runs, and exactly what CI runs. `make test` and `make demo` need Python 3.11+ and
# nothing else: they make .venv in this folder from the lock file first.
PYTHON ?= python3
# Where `make conformance` plays the cases: engine (in process and through its server), server, local
# (DynamoDB Local) or both.
TARGET ?= both
UV_VERSION := 0.13.7

BIN := .venv/bin
READY := .venv/.ready
SOURCES := src tests bench examples docs/generate.py

.DEFAULT_GOAL := help
.PHONY: help setup test check torture conformance bench demo demo-limiter tour fmt lock clean

help: ## Say what the targets do.
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup: $(READY) ## Make .venv from the lock file; done once, and again when the lock changes.

$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "solotable needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Making .venv from requirements/dev.lock, once; this takes a minute or two."
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

test: check ## Check the code, then run the tests (conformance cases on the engine included).
	$(BIN)/python -m pytest -n auto

check: $(READY) ## Formatting, lint, types and the storeys of the house.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

torture: $(READY) ## The long forms: 500 kills, failing disks, 5,000 damaged files, 200,000 bad requests, 320,000 requests of load.
	TORTURE=long $(BIN)/python -m pytest -q -s tests/torture

conformance: $(READY) ## Play the cases on the engine and on DynamoDB Local (TARGET=both), and compare the two.
	$(BIN)/python -m pytest -n auto tests/conformance tests/differential tests/store tests/systems --target=$(TARGET)

bench: $(READY) ## Measure the engine.
	$(BIN)/python -m bench

demo: $(READY) ## A CMS of two tenants on http://127.0.0.1:8080, with credentials and calls to try; Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.cms.demo

demo-limiter: $(READY) ## A limiter of two namespaces on http://127.0.0.1:8081, before an echo like a language model's API.
	$(BIN)/python -m solotable.systems.limiter.demo

tour: $(READY) ## Two tours in the terminal: the store, then the engine beneath it.
	$(BIN)/python examples/surveys.py
	$(BIN)/python examples/engine_tour.py

fmt: $(READY) ## Format, and fix what lint can fix.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# To raise every version: make lock UPGRADE=--upgrade. One package: UPGRADE='--upgrade-package mypy'.
lock: ## Pin the dev dependencies of pyproject.toml, with hashes, in requirements/dev.lock.
	$(PYTHON) -m venv --clear .cache/lock
	.cache/lock/bin/python -m pip install --quiet uv==$(UV_VERSION)
	.cache/lock/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet $(UPGRADE) \
		--output-file requirements/dev.lock

clean: ## Remove everything that make made, DynamoDB Local included.
	rm -rf .venv .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

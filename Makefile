# The commands of developers and of CI. They need Python 3.11 or newer and nothing else: the first one
# creates .venv in this folder from a lock file.
PYTHON ?= python3
# Where `make conformance` runs the cases: engine (in process and through its server), server, local
# (DynamoDB Local) or both.
TARGET ?= both
# The port of `make demo`, `make demo-limiter`, `make demo-surveys` and `make demo-portal`; without it, each uses
# its default port.
PORT ?=
UV_VERSION := 0.13.7

BIN := .venv/bin
READY := .venv/.ready
DEMO_READY := .venv/.demo-ready
# A demo runs in the development environment if it exists; otherwise in a smaller one, installed in seconds.
RUNNABLE := $(if $(wildcard $(READY)),$(READY),$(DEMO_READY))
SOURCES := src tests bench examples docs/generate.py

# $(1): the lock file of the environment.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "solotable needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Choose another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Creating .venv from $(1)."
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --require-hashes --requirement $(1)
	$(BIN)/python -m pip install --no-deps --no-build-isolation --editable .
	@touch $@
endef

.DEFAULT_GOAL := help
.PHONY: help setup test check torture conformance bench demo demo-limiter demo-surveys demo-portal tour fmt lock clean

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup: $(READY) ## Create .venv with everything for development; repeated when the lock file changes.

$(READY): requirements/dev.lock pyproject.toml
	$(call install,requirements/dev.lock)

$(DEMO_READY): requirements/demo.lock pyproject.toml
	$(call install,requirements/demo.lock)

test: check ## Run the checks, then all tests.
	$(BIN)/python -m pytest -n auto

check: $(READY) ## Check formatting, lint, types and import contracts.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

torture: $(READY) ## Run the long tests: killed processes, failing disks, damaged files, fuzzing, load.
	TORTURE=long $(BIN)/python -m pytest -q -s tests/torture tests/systems/limiter/test_exact_model.py

conformance: $(READY) ## Run the conformance cases on the engine and on DynamoDB Local.
	$(BIN)/python -m pytest -n auto tests/conformance tests/differential tests/store tests/systems tests/designs --target=$(TARGET)

bench: $(READY) ## Run the benchmarks.
	$(BIN)/python -m bench

demo: $(RUNNABLE) ## Serve a CMS with two tenants on http://127.0.0.1:8080 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.cms.demo $(if $(PORT),--port $(PORT))

demo-limiter: $(RUNNABLE) ## Serve a rate-limited chat API on http://127.0.0.1:8081 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.limiter.demo $(if $(PORT),--port $(PORT))

demo-surveys: $(RUNNABLE) ## Serve building surveys on http://127.0.0.1:8082 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.surveys.demo $(if $(PORT),--port $(PORT))

demo-portal: $(RUNNABLE) ## Serve an enablement portal with pages on http://127.0.0.1:8083 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.portal.demo $(if $(PORT),--port $(PORT))

tour: $(RUNNABLE) ## Run two examples in the terminal: the store, then the engine.
	$(BIN)/python examples/surveys.py
	$(BIN)/python examples/engine_tour.py

fmt: $(READY) ## Format the code, and fix what lint can fix.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# To upgrade every package: make lock UPGRADE=--upgrade. One package: UPGRADE='--upgrade-package mypy'.
COMPILE := .cache/lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --quiet
# demo.lock has hatchling, which builds the editable install.
lock: ## Pin the dependencies of pyproject.toml, with hashes, in requirements/.
	$(PYTHON) -m venv --clear .cache/lock
	.cache/lock/bin/python -m pip install --quiet uv==$(UV_VERSION)
	$(COMPILE) pyproject.toml --extra dev $(UPGRADE) --output-file requirements/dev.lock
	echo hatchling | $(COMPILE) pyproject.toml - --extra limiter --extra web \
		--constraint requirements/dev.lock --output-file requirements/demo.lock

clean: ## Remove everything that make created, with DynamoDB Local.
	rm -rf .venv .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

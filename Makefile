# The commands of developers and of CI. They need Python 3.11 or newer and nothing else: the first one
# creates .venv in this folder from a lock file.
PYTHON ?= python3
# Where `make conformance` runs the cases: engine (in process and through its server), server, local
# (DynamoDB Local) or both.
TARGET ?= both
# The port of the demos that serve pages; without it, each uses its default port.
PORT ?=
UV_VERSION := 0.13.7
# Container images often set this. The tests start hundreds of Python processes, and each would compile the library.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/.ready
DEMO_READY := .venv/.demo-ready
# A demo runs in the development environment if it exists; otherwise in a smaller one, installed in seconds.
RUNNABLE := $(if $(wildcard $(READY)),$(READY),$(DEMO_READY))
SOURCES := src tests bench examples docs/docstrings.py docs/generate.py docs/pictures.py docs/site.py hatch_build.py

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
.PHONY: help setup test check lint torture conformance bench demo demo-limiter demo-surveys demo-portal demo-community demo-migration tour fmt lock clean docs demo-cms demo-sync package

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup: $(READY) ## Create .venv with everything for development; repeated when the lock file changes.

$(READY): requirements/dev.lock pyproject.toml
	$(call install,requirements/dev.lock)

$(DEMO_READY): requirements/demo.lock pyproject.toml
	$(call install,requirements/demo.lock)

# mypy uses one core for minutes after a clone. It runs beside the tests, and its result follows theirs.
test: lint ## Run the checks and all tests.
	@mkdir -p .cache; \
	$(BIN)/mypy $(SOURCES) > .cache/mypy.log 2>&1 & types=$$!; \
	failed=0; \
	$(BIN)/python -m pytest -n auto --dist worksteal || failed=$$?; \
	wait $$types || failed=$$?; \
	echo "$(BIN)/mypy $(SOURCES)"; cat .cache/mypy.log; exit $$failed

check: lint ## Check formatting, lint, import contracts and types.
	$(BIN)/mypy $(SOURCES)

lint: $(READY) ## Check formatting, lint and import contracts.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

torture: $(READY) ## Run the long tests: killed processes, failing disks, damaged files, fuzzing, load.
	TORTURE=long $(BIN)/python -m pytest -q -s tests/torture tests/systems/limiter/test_exact_model.py \
		tests/unit/protocol/test_decode.py tests/replicache/test_storms.py tests/sync_model

conformance: $(READY) ## Run the conformance cases on the engine and on DynamoDB Local.
	$(BIN)/python -m pytest -n auto --dist worksteal tests/conformance tests/differential tests/store tests/systems tests/designs tests/migrations --target=$(TARGET)

bench: $(READY) ## Run the benchmarks.
	$(BIN)/python -m bench

demo: $(RUNNABLE) ## Serve all systems on one file, and a front page on http://127.0.0.1:8080 (PORT=...).
	$(BIN)/python -m solotable demo $(if $(PORT),--port $(PORT))

demo-cms: $(RUNNABLE) ## Serve a CMS with two tenants on http://127.0.0.1:8080 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.cms.demo $(if $(PORT),--port $(PORT))

demo-limiter: $(RUNNABLE) ## Serve a rate-limited chat API on http://127.0.0.1:8081 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.limiter.demo $(if $(PORT),--port $(PORT))

demo-surveys: $(RUNNABLE) ## Serve building surveys on http://127.0.0.1:8082 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.surveys.demo $(if $(PORT),--port $(PORT))

demo-portal: $(RUNNABLE) ## Serve an enablement portal with pages on http://127.0.0.1:8083 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.portal.demo $(if $(PORT),--port $(PORT))

demo-community: $(RUNNABLE) ## Serve neighbourhoods and sites on http://127.0.0.1:8084 (PORT=...); Ctrl-C stops it.
	$(BIN)/python -m solotable.systems.community.demo $(if $(PORT),--port $(PORT))

demo-migration: $(RUNNABLE) ## Move the surveys to one table under live writers, back, and forth again; in the terminal.
	$(BIN)/python -m solotable.systems.surveys.migration.demo

demo-sync: $(RUNNABLE) ## Serve a survey form that works offline on http://127.0.0.1:8085 (PORT=...); needs Node and npm.
	$(BIN)/python -m solotable.systems.surveys.form.demo $(if $(PORT),--port $(PORT))

docs: $(READY) ## Build the documentation as a site in build/site; a broken link fails.
	$(BIN)/python docs/site.py

package: $(READY) ## Build a wheel and an sdist in dist/; a test checks both.
	$(BIN)/python -m hatchling build -d dist -t wheel -t sdist

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
	echo hatchling | $(COMPILE) pyproject.toml - --extra console --extra demo \
		--constraint requirements/dev.lock --output-file requirements/demo.lock

clean: ## Remove everything that make created, with DynamoDB Local.
	rm -rf .venv .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

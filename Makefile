# `make demo` and `make test` need python3 with venv, make and git; everything else they fetch into .venv.

PYTHON ?= python3
ARGS ?=
# Lives and stories of each suite, and kills on each database, of `make long`; one life, for `make sim`.
SEEDS ?= 3000
KILLS ?= 50
SEED ?=
# Set to anything to measure coverage while testing.
COVER ?=
# Processes that test side by side.
WORKERS ?= auto

VENV := .venv
BIN := $(VENV)/bin
USER_STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet
PYTEST := $(if $(COVER),$(BIN)/coverage run --parallel-mode -m pytest,$(BIN)/pytest)
QUICK_TESTS := tests/unit $(filter-out %postgres.py %_locks.py %_server.py %_feed.py,$(wildcard tests/contract/test_*.py)) tests/test_tidy.py

.DEFAULT_GOAL := help
.PHONY: help demo up setup fmt lint quick test contract sim kills faults long coverage package rest check bench docs clean

help:  ## say what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-9s %s\n", $$1, $$2 }'

demo: $(USER_STAMP)  ## watch three sessions work together on a folder: make demo ARGS=/path/of/a/project
	@$(BIN)/coterie demo $(ARGS)

up: $(USER_STAMP)  ## start a host in this terminal
	@$(BIN)/coterie up $(ARGS)

setup: $(DEV_STAMP)  ## make .venv with everything that working on Coterie needs

fmt: $(DEV_STAMP)  ## format, and repair what can be repaired safely
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format --quiet

lint: $(DEV_STAMP)  ## style, types and arrows
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/basedpyright --warnings
	@$(BIN)/lint-imports --no-logo

quick: lint  ## lint, unit and contract tests: before each commit
	@$(PYTEST) -q -n $(WORKERS) --dist worksteal $(QUICK_TESTS) $(ARGS)

test: $(DEV_STAMP)  ## every test that runs without a service; ends with what was skipped and why
	@$(if $(COVER),$(BIN)/coverage erase)
	@$(PYTEST) -n $(WORKERS) --dist worksteal $(ARGS)

contract: $(DEV_STAMP)  ## the suites that every store must pass
	@$(PYTEST) tests/contract $(ARGS)

sim: $(DEV_STAMP)  ## tell the life of one simulated host again: make sim SEED=123
	@$(BIN)/python -m tests.simulation.host $(SEED)

kills: $(DEV_STAMP)  ## kill hosts under load: make kills KILLS=8 ARGS='--store postgres'
	@$(BIN)/python -m tests.kills --kills $(KILLS) $(ARGS)

faults: $(DEV_STAMP)  ## put faults into a copy of the product; fails if the tests do not notice one
	@$(BIN)/python -m tests.faults $(ARGS)

long: $(DEV_STAMP)  ## many seeds and kills, half an hour: make long SEEDS=3000 KILLS=50
	@$(BIN)/python -m tests.long --seeds $(SEEDS) --kills $(KILLS) $(ARGS)

coverage: $(DEV_STAMP)  ## hold the last `make test COVER=1` against its bounds
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --skip-covered --skip-empty --show-missing --fail-under=95
	@$(BIN)/coverage report --skip-covered --skip-empty --show-missing --include='src/coterie/core/*' --fail-under=100

# The wheel is what people install: it must hold the SQL and start without the tree beside it.
package: $(DEV_STAMP)  ## build the wheel and run it in an empty environment
	@rm -rf build/package dist && mkdir -p build
	@$(BIN)/python -m build --wheel --outdir dist . > build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	@$(PYTHON) -m venv build/package
	@build/package/bin/python -m pip --disable-pip-version-check --no-input install --quiet dist/*.whl
	@$(PYTHON) tests/host/wheel.py build/package/bin/coterie
	@echo "the wheel installs, and answers with one key and no file"

rest: lint coverage faults package  # what `check` does besides the tests

check:  ## all that CI runs
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test COVER=1
	@$(MAKE) --no-print-directory coverage faults package

bench: $(DEV_STAMP)  ## measure, beside the budgets
	@$(BIN)/python -m benchmarks $(ARGS)

docs: $(DEV_STAMP)  ## write the reference pages again, from the program's own tables
	@$(BIN)/python docs/reference/generate.py

clean:  ## remove what was built, .venv included
	@rm -rf $(VENV) build dist .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# Without a python that runs (a half-made environment, or the system's Python went) all begins again, stamps or not.
ifneq ($(shell { $(BIN)/python -c '' || echo none; } 2> /dev/null),)
.PHONY: $(BIN)/python $(USER_STAMP) $(DEV_STAMP)
endif
$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Coterie needs Python 3.11 or newer, this is {v.major}.{v.minor}: make PYTHON=python3.12 …")'
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python's venv is missing. On Debian: apt install python3-venv"; exit 1; }
	@echo "making $(VENV) (once)"
	@$(PYTHON) -m venv --clear $(VENV)

$(USER_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing Coterie into $(VENV) (once; a minute)"
	@$(PIP) --editable .
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing Coterie and its tools into $(VENV) (once; a minute)"
	@$(PIP) --editable '.[dev]'
	@touch $@ $(USER_STAMP)

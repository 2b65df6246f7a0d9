# Two commands matter: `make demo` runs Octavo, `make test` checks everything. Both set up what they need
# in .venv, with nothing but Python 3.11 or newer, make and git; neither needs root.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
LOCKED := --require-hashes --only-binary :all: --progress-bar off
# What is said at length is shown if it fails.
QUIETLY = said=$$($(1) 2>&1) || { printf '%s\n' "$$said" >&2; exit 1; }

# The tests start the program hundreds of times: what was compiled once is kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench peers conformance clients lock race clean

help:
	@echo "make demo         set up and serve an example organisation on http://127.0.0.1:8321 (PORT=… for another port)"
	@echo "make test         set up and run every check"
	@echo "make lint         style, types and the contracts between the rooms"
	@echo "make conformance  the official MCP conformance suites"
	@echo "make clients      thirteen real clients; writes the table of docs/clients.md"
	@echo "make bench        Octavo against its peers, on this machine"
	@echo "make peers        what Octavo and other file servers do with the same files"
	@echo "make race         the symbolic-link race, a million reads in each mode"
	@echo "make lock         renew the lock files"

$(VENV)/base: requirements.lock pyproject.toml
	@echo "octavo: setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "octavo: needs Python 3.11 or newer; say make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv $(VENV)
	@$(call QUIETLY,$(PIP) install $(LOCKED) -r requirements.lock)
	@$(call QUIETLY,$(PIP) install --no-deps --no-build-isolation --editable .)
	@touch $@

$(VENV)/dev: $(VENV)/base requirements-dev.lock
	@echo "octavo: installing what the tests need (once; about two minutes)"
	@$(call QUIETLY,$(PIP) install $(LOCKED) -r requirements-dev.lock)
	@touch $@

demo: $(VENV)/base
	@$(BIN)/octavo demo --dir examples/maison-haru $(if $(PORT),--port $(PORT))

lint: $(VENV)/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(call QUIETLY,$(BIN)/lint-imports --no-cache --no-logo); printf '%s\n' "$$said" | tail -n 1

test: lint
	@$(BIN)/python -m pytest --numprocesses 4 --dist worksteal

conformance: $(VENV)/dev
	@$(BIN)/python conformance/run.py

clients: $(VENV)/dev
	@$(BIN)/python conformance/run_clients.py

bench: $(VENV)/dev
	@$(BIN)/python bench/run.py
	@$(BIN)/python bench/hostile.py

peers: $(VENV)/dev
	@$(BIN)/python bench/peers.py

race: $(VENV)/dev
	@$(BIN)/python -m tests.security.race --reads 1000000 --mode openat2
	@$(BIN)/python -m tests.security.race --reads 1000000 --mode walk

# Names, versions and hashes only: no addresses.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-header --no-annotate --only-binary :all:
lock: $(VENV)/dev
	@$(COMPILE) pyproject.toml --group build -o requirements.lock
	@$(COMPILE) pyproject.toml --group build --group dev --all-extras -c requirements.lock -o requirements-dev.lock
	@$(BIN)/python conformance/run_clients.py --lock

clean:
	@rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Everything that a person or CI runs. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check

# Real nodes start with half the work where Python may keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo quick test check fuzz operations garble lab reproduce bench peers lock clean

help:  ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "CoMesh needs Python 3.11 or newer, and $(PYTHON) is not: try 'make PYTHON=python3.12 ...'"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv or pip. On Debian: apt install python3-venv python3-pip"; exit 1; }
	@echo "Setting up $(VENV) (once; a minute or so)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)  ## an office with 11 nodes as real processes that run its routines while things break (Ctrl-C ends it)
	@$(BIN)/comesh demo

check: $(STAMP)  ## style and types only: quick
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

quick: $(STAMP)  ## style, and the tests of core, deployment and layers: the inner loop, in under 20 seconds
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pytest -q -n 2 --dist worksteal -p no:schemathesis tests/core tests/deployment tests/test_layers.py

test: check  ## all tests, after the checks
	$(BIN)/pytest -n 2

fuzz: $(STAMP)  ## random meshes and faults on all cores, for five minutes, going on where it stopped (SEEDS=A-B)
	$(BIN)/comesh fuzz --resume $(if $(SEEDS),--seeds $(SEEDS),--minutes 5)

operations: $(STAMP)  ## people work on random meshes while they break: 24 simulated hours, going on where it stopped (HOURS=H)
	$(BIN)/comesh fuzz --operations --resume --hours $(if $(HOURS),$(HOURS),24)

garble: $(STAMP)  ## a million bad inputs for each of what reads bytes from outside (about an hour; CASES=N)
	$(BIN)/python tests/fuzz/campaign.py $(if $(CASES),--cases $(CASES))

lab: $(STAMP)  ## break meshes of real processes in every way, and judge them (about twenty minutes; more as root)
	$(BIN)/comesh lab $(SCENARIOS)

reproduce: $(STAMP)  ## every figure and table of the paper, in short form (six to ten minutes; FULL=1: hours)
	$(BIN)/comesh reproduce all $(if $(FULL),--full)

bench: $(STAMP)  ## measure: selection, clauses, simulator, membership, protocol (about twenty minutes)
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/clauses.py
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python benchmarks/membership.py
	$(BIN)/python benchmarks/protocol.py

peers: $(STAMP)  ## measure real nodes beside etcd, ZooKeeper and Serf (about eight minutes; as root it installs them)
	$(BIN)/python benchmarks/nodes.py

lock: $(STAMP)  ## renew requirements.lock from pyproject.toml
	@$(PIP) install uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate --no-header \
	  --python-version 3.11 --all-extras --group dev pyproject.toml --output-file requirements.lock

clean:  ## remove what make made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Every target makes the environment that it needs; a fresh machine has to have only Python and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
JOBS ?= 2
PEERS_VENV := .venv-peers
PEERS_REQUIREMENTS := benchmarks/peers/requirements

.PHONY: demo test test-slow test-matrix release check bench bench-peers bench-real bench-functions docs docs-external clean

demo: $(VENV)/.app
	$(BIN)/python -m paims demo --out demo --force

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS)

# The oldest and the newest versions of everything, under each Python that is here; TESTS and
# PYTHONS choose fewer, e.g. PYTHONS="3.12 /opt/python3.13/bin/python3" TESTS=tests/gp.
test-matrix: $(VENV)/bin/python
	$(INSTALL) uv
	JOBS=$(JOBS) TESTS="$(TESTS)" .ci/matrix $(BIN)/uv .venv-matrix $(PYTHONS)

release: $(VENV)/bin/python
	$(INSTALL) build twine
	.ci/release $(BIN)/python

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.throughput

# The peers have an environment of their own. BOTORCH=1 adds BoTorch, which is large; PEERS is
# passed on, e.g. PEERS="samplers --seeds 2".
bench-peers: $(PEERS_VENV)/.peers$(if $(BOTORCH),-botorch)
	$(PEERS_VENV)/bin/python -m benchmarks.peers $(PEERS) $(if $(BOTORCH),--with-botorch)

# Real simulators, ours beside the peers; REAL is passed on, e.g. REAL="--set cardiac6 --split 0".
bench-real: $(PEERS_VENV)/.peers-botorch
	$(PEERS_VENV)/bin/python -m benchmarks.real $(REAL)
	$(PEERS_VENV)/bin/python -m benchmarks.real --summary

# The public functions of UQTestFuns; FUNCTIONS is passed on, e.g. FUNCTIONS="--design 0 1".
bench-functions: $(PEERS_VENV)/.peers-botorch
	$(PEERS_VENV)/bin/python -m benchmarks.functions $(FUNCTIONS)
	$(PEERS_VENV)/bin/python -m benchmarks.functions --weights $(FUNCTIONS)
	$(PEERS_VENV)/bin/python -m benchmarks.functions --summary

# Runs every cell of every page; a warning, a broken link or a misspelling is an error.
docs: $(VENV)/.docs
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md docs src
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs $(JOBS) -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

docs-external: docs
	$(BIN)/python docs/check_links.py docs/_build/html --external

clean:
	rm -rf $(VENV) $(PEERS_VENV) .venv-matrix docs/_build dist .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable ".[app]"
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable ".[docs]"
	@touch $@

$(PEERS_VENV)/bin/python:
	$(PYTHON) -m venv $(PEERS_VENV)

$(PEERS_VENV)/.peers: $(PEERS_VENV)/bin/python pyproject.toml $(PEERS_REQUIREMENTS).txt
	$< -m pip install --quiet --disable-pip-version-check -r $(PEERS_REQUIREMENTS).txt
	$< -m pip install --quiet --disable-pip-version-check --constraint $(PEERS_REQUIREMENTS).txt --editable ".[app]"
	@touch $@

$(PEERS_VENV)/.peers-botorch: $(PEERS_VENV)/.peers $(PEERS_REQUIREMENTS)-botorch.txt
	$(PEERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $(PEERS_REQUIREMENTS)-botorch.txt
	@touch $@

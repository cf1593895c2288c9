# Everything a developer or CI runs. Each target sets up what it needs: python 3.11+, make and Java 17+ are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FLINK := .venv-flink

.DEFAULT_GOAL := help
.PHONY: help demo test test-attacks test-faults test-schedules test-bank test-endurance test-backlog test-cluster test-browser check format bench bench-yardstick bench-growth bench-serve flink bench-papers fuzz clean python java

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) java ## three feeds, three continuous queries, one feed goes silent: about a minute
	@$(BIN)/headgate demo

test: $(READY) java ## all tests but those below, on DuckDB and on local Spark
	$(BIN)/pytest -n 2 --dist worksteal -m "not cluster"

test-cluster: $(READY) java ## a standalone cluster with two workers, one of which is killed in an epoch; Spark Connect
	$(BIN)/pytest -m cluster

test-browser: $(READY) ## the console in a real Chromium, which is installed if there is none: make test-browser SCREENSHOTS=docs/images
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { apt-get update && apt-get install --yes --no-install-recommends chromium; }
	$(if $(SCREENSHOTS),HEADGATE_SCREENSHOTS=$(SCREENSHOTS)) $(BIN)/pytest tests/server/test_console.py

test-attacks: $(READY) java ## what an attacker would send, also a part of make test: make test-attacks MUTATIONS=1000000 SEED=2
	MUTATIONS=$(or $(MUTATIONS),20000) $(if $(SEED),SEED=$(SEED)) $(BIN)/pytest tests/attacks tests/cql/test_permissions.py tests/cql/test_budgets.py tests/server/test_shares.py tests/server/test_serve.py tests/test_paths.py tests/test_masking.py

test-faults: $(READY) java ## kill processes and restart them, 100 times and more: make test-faults KILLS=200 SEED=1
	PYTHONPATH=tests $(BIN)/python -m tools.faults --kills $(or $(KILLS),100) $(if $(SEED),--seed $(SEED))

test-schedules: $(READY) ## early answers in stages, at any pace, against the reference: make test-schedules SCHEDULES=300 SPARK=1 SEED=1
	PYTHONPATH=tests $(BIN)/python -m tools.schedules --schedules $(or $(SCHEDULES),10000) $(if $(SEED),--seed $(SEED)) $(if $(SPARK),--spark)

test-bank: $(READY) java ## a million transfers and many kills: the total stays zero, also in snapshots: make test-bank TRANSFERS=100000 KILLS=5 SEED=2
	PYTHONPATH=tests $(BIN)/python -m tools.bank --transfers $(or $(TRANSFERS),1000000) --kills $(or $(KILLS),20) --seed $(or $(SEED),1)
	PYTHONPATH=tests $(BIN)/python -m tools.bank --transfers 20000 --accounts 100 --kills $(or $(KILLS),20) --seed $(or $(SEED),1) --pictures

test-endurance: $(READY) java ## 2,000 epochs of a mixed load: memory and files level off; make test-endurance EPOCHS=200
	PYTHONPATH=tests $(BIN)/python -m tools.endurance --epochs $(or $(EPOCHS),2000)

test-backlog: $(READY) java ## ten million tuples at once in bounded memory; make test-backlog ROWS=2000000
	PYTHONPATH=tests $(BIN)/python -m tools.backlog --rows $(or $(ROWS),10000000)

check: $(READY) ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) java ## start, small epochs, time, durability, and the yardstick in small: make bench ROWS=200000
	$(BIN)/headgate bench --rows $(or $(ROWS),200000) --turns $(or $(TURNS),2) --flink $(FLINK)

bench-yardstick: $(READY) java ## headgate beside batch, Structured Streaming and Flink; writes docs/performance.md: ROWS, TURNS, WORK, ONLY
	$(BIN)/headgate bench --part yardstick --flink $(FLINK) --write docs $(if $(ROWS),--rows $(ROWS)) $(if $(TURNS),--turns $(TURNS)) $(if $(WORK),--work $(WORK)) $(if $(ONLY),--only $(ONLY))

bench-growth: $(READY) java ## how the cost of a tuple grows; writes docs/performance.md: make bench-growth LARGEST=10000000
	$(BIN)/headgate bench --part growth --write docs $(if $(ROWS),--rows $(ROWS)) $(if $(TURNS),--turns $(TURNS)) $(if $(LARGEST),--largest $(LARGEST))

bench-serve: $(READY) java ## followers and pushes on one server: make bench-serve FOLLOWERS=200 PUSHES=1000 SECONDS=60
	$(BIN)/headgate bench serve --followers $(or $(FOLLOWERS),200) --pushes $(or $(PUSHES),1000) --seconds $(or $(SECONDS),60)

flink: $(READY) java ## PyFlink in a virtual environment of its own, for the yardstick
	$(PYTHON) -m venv $(FLINK)
	$(FLINK)/bin/pip install --quiet --disable-pip-version-check apache-flink
	$(BIN)/python -m headgate.bench.yardstick.flink $(FLINK)

bench-papers: $(READY) java ## the experiments of the papers on heartbeats; writes docs/papers.md: make bench-papers SECONDS=15
	$(BIN)/headgate bench papers --write docs $(if $(SECONDS),--seconds $(SECONDS))

fuzz: $(READY) ## random queries against the reference, longer: make fuzz SECONDS=600 SEED=1
	PYTHONPATH=tests $(BIN)/python -m tools.fuzz --seconds $(or $(SECONDS),120) $(if $(SEED),--seed $(SEED))

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) $(FLINK) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt | python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $(READY)

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "headgate needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || echo missing)." >&2; \
	  echo "Install one and say which: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }

java:
	@$(BIN)/python -c 'from headgate.cli import need_java; need_java()'

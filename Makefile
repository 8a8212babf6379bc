# Needs make and a Python of 3.10 or newer with venv; everything else goes into .venv.
# `make demo FAULT=nan` (divergence, plateau, stall, crash, oom, slow, leak) breaks the demo's run.

BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help setup client demo test lint bench clean

help:
	@echo "make setup | demo [FAULT=…] | test | lint | bench | clean"

setup: $(STAMP)

$(STAMP): pyproject.toml
	@if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	  for name in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.10 python; do \
	    if "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' \
	      2>/dev/null; then found=$$name; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "trainwarden needs Python 3.10 or newer with venv; none was found on PATH." >&2; \
	    echo "Install one (Debian, Ubuntu: apt-get install python3 python3-venv) or name it:" >&2; \
	    echo "make setup PYTHON=/path/to/python3" >&2; exit 1; \
	  fi; \
	  echo "setting up .venv with $$("$$found" -V)"; \
	  "$$found" -m venv --clear .venv; \
	fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/python demo/run.py $(if $(FAULT),--fault $(FAULT))

client:
	@tests/client/install.sh

# Those that drive the client mostly wait for it, so they run beside the others.
DRIVEN = tests/client tests/plugin
test: $(STAMP) client
	@said=$$(mktemp); code=0; \
	$(BIN)/python -m pytest $(DRIVEN) >"$$said" 2>&1 & driven=$$!; \
	trap 'kill $$driven 2>/dev/null; rm -f "$$said"' EXIT INT TERM; \
	$(BIN)/python -m pytest $(DRIVEN:%=--ignore=%) || code=$$?; \
	wait $$driven || code=$$?; \
	cat "$$said"; exit $$code

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy demo
	$(BIN)/python -m trainwarden.faces.plugin

bench: $(STAMP) client
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/log_speed.py
	@$(BIN)/python benchmarks/guard.py
	@$(BIN)/python benchmarks/tokens.py

clean:
	rm -rf .venv .client demo-runs build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

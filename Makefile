# pi-dispatch: `make help` says what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV ?= .venv
PY := $(VENV)/bin/python
# The first Python of 3.11 or newer that this machine has.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$p"; break; fi; done)
NAME ?=
# Most tests wait for processes of their own: two of those run beside one that computes. PROCESSES=0 is one after the other.
PROCESSES ?= 3
# Where Python is told to keep no compiled files, each of them would compile all of the tests anew.
COMPILED := env -u PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-data test check image bench soak venv venv-dev clean

help: ## What each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: requirements.txt constraints.txt
	@if [ -z "$(PYTHON)" ]; then echo "make: no Python of 3.11 or newer was found; install one or set PYTHON=/path/to/python"; exit 2; fi
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) cannot make virtual environments; install its venv package (Debian: apt-get install python3-venv)"; exit 2; }
	@echo "Making the virtual environment in $(VENV) and installing what the product needs (once, about a minute) …"
	@"$(PYTHON)" -m venv "$(VENV)"
	@"$(PY)" -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	@touch "$@"

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt
	@echo "Installing what the tests and checks need …"
	@"$(PY)" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -c constraints.txt
	@touch "$@"

venv: $(VENV)/.ready ## Make the virtual environment
venv-dev: $(VENV)/.ready-dev

demo: $(VENV)/.ready ## See one job travel from the command line to its record (KEEP=1 leaves it running)
	@"$(PY)" manage.py demo $(if $(filter 1,$(KEEP)),--keep)

demo-data: $(VENV)/.ready ## See the console filled: a fleet at work and weeks of invented runs; says how to end it
	@"$(PY)" manage.py demo --data

test: $(VENV)/.ready-dev ## Run the tests; without an engine or Chromium those that need them are skipped
	@$(COMPILED) "$(PY)" -m pytest -n $(PROCESSES) --dist loadfile $(ARGS)
	@$(if $(ARGS),:,$(COMPILED) "$(PY)" -m tests.postgres -n $(PROCESSES) --dist loadfile --quiet)

check: $(VENV)/.ready-dev ## Lint, format, types, migrations
	@"$(VENV)/bin/ruff" check .
	@"$(VENV)/bin/ruff" format --check .
	@"$(VENV)/bin/mypy" .
	@"$(PY)" manage.py makemigrations --check --dry-run

image: ## Build the job image pi-job:latest (BASE=… names another base image)
	@bash image/build.sh

bench: $(VENV)/.ready-dev ## Compare with bare peers, one JSON object a line (NAME=… runs one)
	@"$(PY)" -m tests.bench $(NAME)

soak: $(VENV)/.ready-dev ## Kill, freeze and cut off for minutes (NAME=… runs one)
	@"$(PY)" -m tests.soak $(NAME)

clean: ## Remove the virtual environment and caches
	rm -rf "$(VENV)" .pytest_cache .mypy_cache .ruff_cache .hypothesis staticfiles screenshots

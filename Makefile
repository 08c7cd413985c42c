# `make run` and `make test` need Python 3.11 to 3.14 and nothing else; `make help` lists the rest.

PYTHON ?= $(shell scripts/python)

py := .venv/bin/python
manage := $(py) manage.py
templates = $(shell find templates -name '*.html' 2>/dev/null)

# A clone of root's in a closed directory works out of the box: docs/decisions/0084.
export RAGSITE_CHMOD_PARENTS ?= true

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run test test-all test-fast coverage check check-types check-style check-django openapi schema messages lock bench fmt services-stop clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "make %-14s %s\n", $$1, $$2}'

setup:  ## make .venv with what the site needs
	@$(PYTHON) scripts/setup.py

setup-dev:  ## make .venv with what tests and checks need too
	@$(PYTHON) scripts/setup.py --dev

run: setup  ## run the site with a demo login and corpus (PORT=8000 BIND=127.0.0.1)
	@$(manage) collectstatic --noinput --verbosity 0 & $(manage) migrate --noinput --skip-checks --verbosity 0 && wait $$!
	@$(manage) demo --queue
	@$(manage) up $(if $(PORT),--port $(PORT)) $(if $(BIND),--bind $(BIND))

test: setup-dev  ## run the tests that a change must pass, as CI does (ARGS='-k name' for some)
	@scripts/chromium
	@$(py) -m pytest -n 3 --dist loadgroup --hypothesis-profile=short -m "not nightly" $(ARGS)

test-all: setup-dev  ## run every test, the long ones too
	@scripts/chromium
	@$(py) -m pytest -n 3 --dist loadgroup $(ARGS)

test-fast: setup-dev  ## run the tests of pure code, and ask each operation, page and command once
	@$(py) -m pytest -n 2 --dist loadgroup --hypothesis-profile=shortest $(addprefix --ignore=,inference/tests/local reading/tests/test_ocr.py) \
		-m "doors or not (nightly or database or model or browser or shared_data)" \
		$(addsuffix /,common accounts inference model_servers reading documents sources memory graph search rag clients dashboard) \
		$(addprefix tests/test_,access_doors.py api_bounds.py commands.py translations.py::test_main_pages_have_no_english_text) $(ARGS)

coverage: setup-dev  ## run every test and print the lines that none of them runs
	@$(py) -m pytest -n 2 --dist loadgroup --cov --cov-report=term:skip-covered $(ARGS)

check:  ## run the linters, the type checker and Django's checks
	@$(MAKE) --no-print-directory --jobs 2 check-types check-style check-django

check-types: setup-dev
	.venv/bin/mypy .

check-style: setup-dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	$(if $(templates),.venv/bin/djade --check --target-version 5.2 $(templates))
	.venv/bin/lint-imports

check-django: setup-dev
	$(manage) check
	$(manage) check --deploy --tag urls --tag admin --tag templates
	$(manage) makemigrations --check --dry-run
	$(py) -m scripts.check_migrations
	$(py) -m scripts.schema --check
	$(py) -m scripts.messages --check
	@mkdir -p var
	$(manage) spectacular --validate --file var/openapi.yaml
	@diff -u docs/openapi.yaml var/openapi.yaml || { echo 'docs/openapi.yaml is out of date: run `make openapi`' >&2; exit 1; }

openapi: setup  ## write docs/openapi.yaml
	$(manage) spectacular --validate --file docs/openapi.yaml

schema: setup  ## write ragsite/schema.sql, after a migration was added
	$(py) -m scripts.schema

messages: setup-dev  ## find texts of pages, and compile their translations
	$(py) -m scripts.messages

lock: setup-dev  ## compile requirements*.in to requirements*.txt
	for name in requirements requirements-dev; do \
		.venv/bin/pip-compile --quiet --strip-extras --no-header --no-annotate --no-emit-index-url \
			--no-emit-trusted-host --no-emit-find-links --output-file $$name.txt $$name.in || exit 1; \
		sed -i 's/+cpu$$//' $$name.txt; \
	done

bench: setup-dev  ## measure
	@for name in $(filter-out site,$(basename $(notdir $(shell grep -l '^if __name__' bench/*.py)))); do \
		echo "== bench.$$name"; $(py) -m bench.$$name || exit 1; done

fmt: setup-dev  ## format code and templates
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	$(if $(templates),.venv/bin/djade --target-version 5.2 $(templates))

services-stop:  ## stop the embedded PostgreSQL and Valkey
	@$(manage) services stop

clean:  ## remove .venv and caches; the data in var/ stays
	@if [ -x $(py) ]; then $(manage) services stop; fi
	rm -rf .venv .venv.lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

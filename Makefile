# Few targets; each does all of its own set-up. PYTHON picks the interpreter (3.11 or newer).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test check format clean pg pg-stop

demo: $(STAMP)            ## everything from nothing: install, record a small conversation, recall it, explain why
	$(BIN)/mnemic demo

test: $(STAMP)            ## all tests, on every database
	$(BIN)/python -m pytest

check: $(STAMP)           ## lint, types, layers
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)          ## rewrite the code in the house's format
	$(BIN)/ruff check --fix src tests bench
	$(BIN)/ruff format src tests bench

pg: $(STAMP)              ## start a real PostgreSQL with pgvector for trials; prints its URL and leaves it running
	$(BIN)/python -m tests.postgres start

pg-stop: $(STAMP)         ## stop it
	$(BIN)/python -m tests.postgres stop

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[all,dev]'
	touch $(STAMP)

clean:                    ## remove what the targets made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build

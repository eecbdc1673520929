# Everything sets itself up: a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

.PHONY: demo test check clean

$(VENV)/core: requirements/core.txt requirements/demo.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/demo.txt hatchling editables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/tests: $(VENV)/core requirements/test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@touch $@

demo: $(VENV)/core  ## train on real data and print what happens
	$(BIN)/corrdp demo

test: $(VENV)/tests  ## the whole test suite, warnings as errors
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/tests  ## lint, format, types, doctests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --doctest-modules src -q

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache

# `make help` lists the targets. Without PYTHON everything is installed into .venv first;
# `make figures PYTHON=python` uses the environment you are in (see environment.yml).
PROFILE ?= quick

ifdef DATA
export PRSLIB_DATA := $(DATA)
endif

ifdef RAY_ADDRESS
export RAY_ADDRESS
endif

ifdef PYTHON
READY :=
else
PYTHON := .venv/bin/python
READY := .venv/installed
endif

# the README's tables are those of the profile with ten seeds
RENEW = @if [ -n "$$(find "$${PRSLIB_FIGURES:-figures}/seeds" -name '*.csv' -newer README.md)" ]; \
	then $(PYTHON) -m prslib readme && touch README.md; fi

.DEFAULT_GOAL := help
.PHONY: help figures report verify test soak lab lint bench clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*##/make \1\t/' | expand -t 16
	@echo "PROFILE=smoke|quick|seeds|laptop|paper chooses the experiments' size, PYTHON=python your own environment,"
	@echo "DATA=/path the folder of the real data sets (python -m prslib prepare --help)"
	@echo "RAY_ADDRESS=host:port the Ray cluster that trains the runs"

figures: $(READY)  ## train what is missing and draw every figure into figures/PROFILE
	$(PYTHON) -m prslib figures --profile $(PROFILE)
	$(if $(filter seeds,$(PROFILE)),$(RENEW))

report: figures  ## the README and the executed notebooks as web pages in cache/report/PROFILE
	$(PYTHON) -m prslib report --profile $(PROFILE)

verify: $(READY)  ## train a few runs anew, compare them and what was drawn with the commit
	$(PYTHON) -m prslib verify --profile $(PROFILE)

test: $(READY)  ## install and run the tests
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -c "from importlinter.cli import lint_imports_command as lint; lint()" --no-cache
	$(PYTHON) -m pytest -n auto --dist loadfile

KILLS ?= 1000
soak: $(READY)  ## kill all kinds of work KILLS times at random, for hours, and compare all bytes
	$(PYTHON) tests/soak.py $(KILLS)

lab: $(READY)  ## open the notebooks in JupyterLab
	$(PYTHON) -m jupyterlab --notebook-dir=notebooks

lint: $(READY)  ## format the code, sync the notebooks' two forms
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
	$(PYTHON) -m jupytext --sync notebooks/*.py

bench: $(READY)  ## measure the speed of the samplers and what they cost in training, and how many runs an hour
	$(PYTHON) bench/samplers.py
	$(PYTHON) bench/replay_share.py
	$(PYTHON) bench/gss.py
	$(PYTHON) bench/many.py

clean:  ## remove .venv, figures/custom and cache/: runs, executed notebooks, pages, data sets made
	rm -rf .venv cache figures/custom

.venv/installed: pyproject.toml
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv/bin/uv pip install --python .venv/bin/python --compile-bytecode --editable '.[test]'
	touch $@

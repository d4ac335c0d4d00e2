PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.entourage
PAGES := tests/serving/browser

.PHONY: setup setup-ray setup-browser demo test heavy-tests browser ray long-tests coverage mutation check bench pages docs tutorials dist wheel wheels lowest clean

setup: $(STAMP)-dev

setup-ray: $(STAMP)-ray

demo: $(STAMP)-demo  ## train four nets on the medoid task, compare with the paper, write demo/report.html and demo/explorer.html
	$(BIN)/entourage demo

test: $(STAMP)-dev  ## all tests but the heavy ones
	$(BIN)/python -m pytest -m "not heavy and not browser and not ray"

heavy-tests: $(STAMP)-dev  ## GPU kernels in an interpreter, and tests that start processes
	$(BIN)/python -m pytest -m "heavy and not slow" tests

browser: setup-browser  ## pages in Debian's Chromium, and types of their JavaScript; what can't be installed is skipped, saying so; REQUIRE_BROWSER=1: fails
	$(BIN)/python -m pytest -m browser -n 2 --dist loadfile $(PAGES)

setup-browser: $(STAMP)-browser
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
		|| echo "Chromium can't be installed here (apt-get install chromium)."
	@if command -v npm >/dev/null; then npm ci --prefix $(PAGES) --silent --no-audit --no-fund || echo "npm can't install what $(PAGES)/package.json names."; \
		else echo "npm is not here: types and accessibility rules of pages are not checked."; fi

ray: $(STAMP)-ray  ## Ray and torch.distributed in a network namespace of their own; where that isn't allowed, tests are skipped, saying so
	$(BIN)/python tests/apart.py -m pytest -n 0 -m "ray and not slow" tests/distributed

long-tests: $(STAMP)-ray  ## simulations of the statistical claims: hours on two cores; rows in benchmarks/results
	$(BIN)/python tests/apart.py -m pytest -n 0 -m "ray and slow" tests/distributed
	$(BIN)/python -m pytest -m "slow and not ray" tests
	CHECK_AXES=everywhere $(MAKE) test  # axes of every net and loss, in all tests
	$(BIN)/python -m benchmarks.calibration.context_test
	$(BIN)/python -m benchmarks.calibration.verdict
	$(BIN)/python -m benchmarks.calibration.effects
	$(BIN)/python -m benchmarks.calibration.probabilities
	$(BIN)/python -m benchmarks.calibration.decisions
	$(BIN)/python -m benchmarks.calibration.trade_offs
	$(BIN)/python -m benchmarks.calibration.logits
	$(BIN)/python -m benchmarks.calibration.mixed_swissmetro

coverage: $(STAMP)-dev  ## the tests of make test, under coverage: a table by room; fails where the core has less than 95 %
	rm -rf .coverage && mkdir .coverage
	$(BIN)/coverage run -m pytest -m "not heavy and not browser and not ray"
	$(BIN)/coverage combine --quiet
	$(BIN)/python -m benchmarks.quality.coverage

mutation: $(STAMP)-mutation  ## mutants of losses, metrics, tasks and of the statistics behind the verdict: about an hour of one core
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.quality.mutation

check: $(STAMP)-dev pages  ## lint, format, types, import contracts, spelling, docs, their links and what they would fetch
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python docs/check.py docs/_build/html

bench: $(STAMP)-dev  ## speed, as ratios within one run
	$(BIN)/python -m benchmarks

pages: $(STAMP)-dev  ## docs/_build/html/index.html, without the explorers
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

docs: $(STAMP)-dev  ## docs/_build/html/index.html, with explorers of simulated data; make docs DATA=folder: of real data, too
	$(BIN)/python docs/explorers/make.py --out docs/_build/html/explorers $(if $(DATA),--data $(DATA))
	$(MAKE) pages
	$(BIN)/python docs/check.py docs/_build/html

tutorials: $(STAMP)-dev  ## make tutorials DATA=folder: runs the tutorials on real data, compares what they print with what they show; minutes
	$(BIN)/python docs/tutorials/run.py --check $(if $(DATA),--data $(DATA))

dist: $(STAMP)-package  ## dist/: the source distribution, and the wheel that it builds; their contents are checked
	rm -rf dist
	$(BIN)/uv build --quiet --python $(VENV)/bin/python --out-dir dist
	$(BIN)/uv build --quiet --python $(VENV)/bin/python --wheel --out-dir dist/from-tree .
	$(BIN)/python tests/release/contents.py dist
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz

wheel: dist  ## the wheel in an empty environment of this Python: import, --help, a small table; what CI runs
	$(BIN)/python tests/release/environments.py --python $$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])') --extra core --no-tests

wheels: dist  ## the same in every Python that is here, the core with some of its tests, and each extra; WHEELS=--cuda: also where torch brings CUDA, gigabytes
	$(BIN)/python tests/release/environments.py $(WHEELS)

lowest: dist  ## with the oldest dependencies that pyproject.toml allows
	$(BIN)/python tests/release/environments.py --lowest

clean:
	rm -rf $(VENV) docs/_build docs/gallery demo dist mutants .coverage $(PAGES)/node_modules

# torch comes first and by itself: with the pinned build in place nothing pulls another one.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP)-demo: $(VENV)/bin/python pyproject.toml constraints.txt src/entourage/__init__.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[onnx,report]'
	touch $@

$(STAMP)-dev: $(VENV)/bin/python pyproject.toml constraints.txt src/entourage/__init__.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# Not the project, nor torch: a release is built with as little as possible.
$(STAMP)-package: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['package'], sep='\n')" > $@
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $@ || { rm $@; false; }

$(STAMP)-browser: $(STAMP)-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	touch $@

$(STAMP)-mutation: $(STAMP)-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mutation]'
	touch $@

$(STAMP)-ray: $(STAMP)-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	touch $@

# `make demo` and `make test` need Python 3.11+ and make; everything else they install into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

# Studies and some tests use real corpora when the folder is there.
ifneq ($(wildcard ../shared/data),)
export HEEDFUL_DATA ?= $(abspath ../shared/data)
endif

# Tests start the program again and again; it would be compiled every time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check bench browser axe docs pages fuzz fuzz-api dist check-dist licences audit-deps mutants kills shortages long clean

demo: $(STAMP)
	$(BIN)/heedful audit synthetic-1 --fresh

test: check browser axe
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

# The papers run again, such as `make study-jain2019`: hours, half an hour and a quarter of an hour on two slow cores;
# --quick makes minutes of them.
study-%: $(STAMP)
	$(BIN)/heedful reproduce $* --out $@

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# The documentation as a site, from build/site/index.html on; a warning is an error. Its makers advertise at every start.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict

# Pages and pictures of docs/ that are made from the code, written anew.
pages: $(STAMP)
	$(BIN)/python -m pages

# The report is opened in a real browser by the tests; where none is found, Debian's is installed if that is possible.
browser: $(STAMP)
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 || \
	  { command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && \
	    apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	  echo "no browser found and none can be installed here: the browser tests will be skipped" >&2

# What looks for barriers in the page; where npm is missing, the tests that use it are skipped.
axe: .cache/axe-core-4.14.0/axe.min.js

.cache/axe-core-4.14.0/axe.min.js:
	@mkdir -p $(@D) && cd $(@D) && npm pack --silent axe-core@4.14.0 >/dev/null 2>&1 && \
	  tar xzf axe-core-4.14.0.tgz --strip-components=1 package/axe.min.js && rm axe-core-4.14.0.tgz || \
	  echo "axe-core cannot be fetched here: the tests of accessibility will be skipped" >&2

# Broken input at every door, EACH times as often as the tests have it: minutes to hours.
EACH ?= 3000
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz --each $(EACH)

# Thousands of requests made from the description of the API, by schemathesis in an environment of its own.
fuzz-api: $(STAMP)
	[ -x .cache/schemathesis/bin/schemathesis ] || { $(PYTHON) -m venv .cache/schemathesis && \
	  .cache/schemathesis/bin/python -m pip install --quiet --constraint constraints.txt schemathesis==4.32.5; }
	$(BIN)/python -m tests.web.fuzz .cache/schemathesis/bin/schemathesis

# Small bugs planted one at a time: do the nearest tests see them? AGAIN=1 runs those that passed once more.
SAMPLE ?= 200
SEED ?= 0
mutants: $(STAMP)
	$(BIN)/python -m tests.mutants --sample $(SAMPLE) --seed $(SEED) $(if $(AGAIN),--again)

# Wheel and source archive, the same bytes from the same commit, and a bill of materials.
dist: $(STAMP)
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1580601600) \
	  $(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m release.licences dist

# The wheel in clean environments, core alone and each extra alone: some minutes, and torch once more on the disk.
check-dist: dist
	$(BIN)/python -m release.check dist/heedful-*.whl --constraints constraints.txt

licences: $(STAMP)
	$(BIN)/python -m release.licences

# Known weaknesses of the libraries, where the service that knows them can be asked; what cannot be asked is a failure.
audit-deps:
	[ -x .cache/pip-audit/bin/pip-audit ] || { $(PYTHON) -m venv .cache/pip-audit && \
	  .cache/pip-audit/bin/python -m pip install --quiet pip-audit==2.10.1; }
	@.cache/pip-audit/bin/pip-audit --strict --progress-spinner off --requirement constraints.txt --no-deps --disable-pip || \
	  { echo "audit-deps: a weakness is known, or a library could not be asked about (see above)" >&2; exit 1; }

# What is killed, what has no room, and what runs for long (docs/robustness.md): a quarter of an hour each. As root, disks
# are filled too.
KILLS ?= 200
kills: $(STAMP)
	$(BIN)/python -m tests.fuzz.kills --kills $(KILLS)

shortages: $(STAMP)
	$(BIN)/python -m tests.fuzz.shortages

long: $(STAMP)
	$(BIN)/python -m tests.fuzz.long

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "heedful needs Python 3.11 or newer, this is " + sys.version)'
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,ray]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps ferret-xai  # tests take one class of it; its own pins exclude ours
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

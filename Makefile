# seq2see: `make demo` shows it, `make test` proves it, `make help` lists the rest.

VENV    ?= .venv
ARGS    ?=
EXTRAS  ?= dev,demo,parquet,datasets,excel,zstd,tensorboard,mlflow,wandb,images,sound,video,studio,samples,ctranslate2,onnx,otel,tune,hub,nearest,notebook,docs
# Options for pip, for instance PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu" for a torch without CUDA.
PIP_ARGS ?=
# Test workers: one per core; each keeps to one thread, so that they do not fight for cores.
WORKERS ?= auto
# The order of `make shuffled` and what `make faults` draws; a failure is repeated by naming the same seed.
SEED    ?= 1
# Random kills of a training by `make faults`; other random faults are tried a fifth as often.
KILLS   ?= 50
# Cases of `make fuzz`; length and clients of `make soak`.
CASES   ?= 100000
MINUTES ?= 20
CLIENTS ?= 50
# A module's tests stay with one worker; short modules (doctests) come last, so that all workers end at the same time.
PYTEST  = OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --maxprocesses 8 --dist loadscope --no-loadscope-reorder

# Tried by running it: a name on the PATH may be a shim with nothing behind it, and Debian's Python may lack venv.
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
# 3.11 first: the version that constraints.txt was tested with.
PYTHON  ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3 python; do \
             "$$name" -c '$(SUITABLE)' >/dev/null 2>&1 \
             && command -v "$$name" && break; done)

BIN   := $(VENV)/bin
TOOLS := .tools
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo docs notebooks test slow faults fuzz soak shuffled lint types check format zoo runtime lock licences sbom audit bench bench-peers clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## set up: .venv with seq2see and everything its tests need

$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(SUITABLE)' || { \
	  echo "seq2see needs Python 3.11 or later with the venv module (found: $(or $(PYTHON),none on the PATH))." >&2; \
	  echo "Debian, Ubuntu: apt-get install python3 python3-venv; or name one: make install PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }
	@echo "creating $(VENV) with $(PYTHON) ($$($(PYTHON) --version))"
	@$(PYTHON) -m venv $(VENV)

# The stamp is touched last, so an installation that was cut short is taken up again.
$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing seq2see[$(EXTRAS)] into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

demo: $(STAMP) ## train for two minutes, show predictions and heatmaps, serve them as a page; ARGS="--no-serve --minutes 0.5"
	@$(BIN)/seq2see demo $(ARGS)

docs: $(STAMP) ## the documentation site, in dist/site; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebooks: $(STAMP) ## run the notebooks of docs/notebooks and keep their outputs; ARGS="captioning" picks
	$(BIN)/python tools/make_notebooks.py $(ARGS)

test: $(STAMP) ## the whole default test suite; ARGS="-k beam" picks
	$(PYTEST) $(ARGS)

slow: $(STAMP) ## the tests that `make test` leaves out
	$(PYTEST) -m slow $(ARGS)

faults: $(STAMP) ## kills, damaged checkpoints, full disks, moved clocks ..., for real, with a table of what came of it; KILLS=50 SEED=1
	KILLS=$(KILLS) SEED=$(SEED) OMP_NUM_THREADS=1 $(BIN)/pytest tests/faults -m "" $(ARGS)

shuffled: $(STAMP) ## the default test suite in random order; SEED=7 chooses another one
	$(PYTEST) --random-order-bucket=module --random-order-seed=$(SEED) $(ARGS)

lint: $(STAMP) ## style, format, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

check: lint types test ## everything that .ci/run checks

format: $(STAMP) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(STAMP) ## hostile recipes, tables, media, folders and requests; CASES=100000 SEED=1, about ten minutes of one core
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --cases $(CASES) --seed $(SEED) $(ARGS)

soak: $(STAMP) ## clients at a server with models of all kinds, one request in ten malformed; MINUTES=20 CLIENTS=50
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.soak --minutes $(MINUTES) --clients $(CLIENTS) $(ARGS)

zoo: $(STAMP) ## build and measure the models that `seq2see models` lists; ARGS="dates numbers" picks
	OMP_NUM_THREADS=1 $(BIN)/python tools/make_zoo.py $(ARGS)

lock: $(STAMP) $(TOOLS)/.installed ## requirements.lock: constraints.txt with hashes
	PATH="$(abspath $(TOOLS))/bin:$$PATH" $(BIN)/python tools/supply_chain.py lock

licences: $(STAMP) ## of everything installed that seq2see needs; fails on one that is not allowed
	$(BIN)/python tools/supply_chain.py licences

sbom: $(STAMP) $(TOOLS)/.installed ## dist/seq2see.cdx.json: all packages of the environment (CycloneDX)
	@mkdir -p dist
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --spec-version 1.6 --output-reproducible \
	  -o dist/seq2see.cdx.json $(BIN)/python

audit: $(STAMP) $(TOOLS)/.installed ## known vulnerabilities; exit 3: the database cannot be reached; ARGS="--database all.zip"
	PATH="$(abspath $(TOOLS))/bin:$$PATH" $(BIN)/python tools/supply_chain.py audit $(ARGS)

# In an environment of their own, so that they are not among the packages that they describe.
$(TOOLS)/.installed: constraints.txt | $(BIN)/python
	@$(BIN)/python -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) \
	  uv==0.13.8 pip-audit==2.10.1 cyclonedx-bom==7.5.0
	@touch $@

runtime: $(STAMP) ## the wheel of seq2see-runtime, in dist
	cd runtime && $(abspath $(BIN))/python -m hatchling build -t wheel -d ../dist

bench: $(STAMP) ## every benchmark, each with a ratio against a peer or the machine's limit
	@found=; for script in benchmarks/[!_]*.py; do \
	  test -f "$$script" || continue; \
	  found=yes; echo "== $$script"; $(BIN)/python "$$script" $(ARGS) || exit 1; \
	done; test -n "$$found" || { echo "there is no benchmark in benchmarks/" >&2; exit 1; }

bench-peers: $(STAMP) ## beside OpenNMT-py, Joey NMT and CTranslate2, in environments of their own (.peers); about 40 minutes
	$(BIN)/python benchmarks/peers/run.py $(ARGS)

clean: ## caches and builds; the environment stays (rm -r .venv takes that too)
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find seq2see tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

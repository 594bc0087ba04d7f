# Everything starts here; a machine with Python, make and pip is enough. `make help` lists the targets.
#
# Environments are made on first use and remade when a pinned version changes; each keeps a stamp file, so
# that a repeated call goes straight to work. Every package is installed from a file whose hash is pinned: the lists
# *.in of requirements/ and ecosystem/ say what is wanted, and `make pins` writes the files *.txt beside them, with all
# that is brought in. So pip need not look for more, and `pip check` says whether anything is missing.

PYTHON ?= $(or $(shell .ci/find-python),python3)
PYTEST_ARGS ?=
BENCH_ARGS ?=
ACCURACY_ARGS ?=
FUZZ_ARGS ?= --minutes 10 --seed 0
SOAK_ARGS ?= kinds
ECOSYSTEM_ARGS ?=
PRIVATE_NAMES_ARGS ?=
LIBRARY_TESTS_ARGS ?=
DOCS_ARGS ?=
PINS_ARGS ?=
DATE ?= $(shell date +%Y-%m-%d)
OTHER_PYTHONS ?= 3.12 3.13
# The suite of the Python array API standard: a checkout of https://github.com/data-apis/array-api-tests.
ARRAY_API_TESTS ?= ../array-api-tests
ARRAY_API_ARGS ?= --max-examples 20

# What the installation compiles.
MODULES_IN_C = $(wildcard src/pullback/backends/host/*.[ch] src/pullback/transforms/jit/*.c)

PIP = $(PYTHON) -m pip --disable-pip-version-check --python $(@D)/bin/python
PIP_SAYS ?= --quiet
PIP_INSTALL = $(PIP) install $(PIP_SAYS) --no-deps --require-hashes
PIP_CHECK = $(PIP) check

# Programs leave their byte code for those that start after them, whatever the environment says: runs of tests start some
# hundred processes, each of which would compile the source again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help cookbook examples test test-slow test-all coverage test-all-pythons test-newest-jaxlib test-processors mutants fuzz \
    fuzz-readers soak lint typecheck bench changes stubs names rules facts pins accuracy science array-api array-api-functions changelog \
    changelog-draft check-distribution ecosystem ecosystem-quick ecosystem-record private-names library-tests docs docs-test docs-quick targets clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' Makefile

cookbook: .venv/runtime.stamp ## run the main job: the autodiff cookbook, every figure checked
	.venv/bin/python examples/autodiff_cookbook.py

examples: .venv/runtime.stamp ## run every example
	@set -e; for example in examples/*.py; do echo "== $$example"; .venv/bin/python "$$example"; done

# Two workers. One that has no more tests takes some of the other's: otherwise one waits for minutes at the end.
IN_TWO = -n 2 --dist worksteal

test: .venv/dev.stamp ## run the tests and doctests, without the slow ones (PYTEST_ARGS adds options)
	.venv/bin/python -m pytest $(IN_TWO) -m "not slow" $(PYTEST_ARGS)

test-slow: .venv/dev.stamp ## the tests that take seconds each: examples, processes, devices
	.venv/bin/python -m pytest $(IN_TWO) -m slow $(PYTEST_ARGS) $(shell grep -rl --include="*.py" "mark\.slow" tests)

# The usual run pairs dtypes, modes and transformations with each other; this one multiplies them.
test-all: .venv/dev.stamp ## the same, every combination of dtypes, modes and transformations
	PULLBACK_EXHAUSTIVE=1 .venv/bin/python -m pytest $(IN_TWO) $(PYTEST_ARGS)

coverage: .venv/dev.stamp ## the tests without the slow ones, and which lines and branches they reach; fails below the floor
	.venv/bin/python -m pytest $(IN_TWO) -m "not slow" --cov --cov-report=term $(PYTEST_ARGS)

test-all-pythons: test test-slow $(OTHER_PYTHONS:%=test-python-%) ## the tests on 3.12 and 3.13 too, where they are installed

# The modules in C, which are compiled for each version of Python.
OF_MODULES_IN_C = tests/backends/host/test_native.py tests/transforms/jit/test_quick.py \
    tests/backends/compiler/test_runners.py
# What depends on the version of Python most: how functions, classes, threads and exceptions are treated.
ON_PYTHON = tests/core tests/export tests/extend tests/public tests/testing tests/top_level tests/transforms/functions \
    tests/transforms/jit tests/transforms/test_threads.py tests/numpy/test_interop.py tests/numpy/test_operators.py \
    $(OF_MODULES_IN_C)
# What depends on the release of the compiler, of which Python 3.12 and later have a newer one.
ON_COMPILER = tests/backends/compiler tests/backends/devices tests/backends/hlo tests/backends/processes \
    tests/grid/test_compiled.py tests/primitives/test_compiled_arrays.py tests/primitives/arrays/test_compiled_indexing.py
# What test-python-% runs: by default everything.
TESTS ?=

# Where the interpreter is missing this says so and succeeds: not every machine has them all.
test-python-%:
	@if python=$$(.ci/find-python $*); then \
	    $(MAKE) --no-print-directory .venv-$*/dev.stamp PYTHON="$$python" && \
	    .venv-$*/bin/python -m pytest $(IN_TWO) $(PYTEST_ARGS) $(TESTS); \
	else \
	    echo "Python $* is not installed here: its tests are skipped"; \
	fi

# The newest jaxlib there is, with the JAX that some tests compare with; also one that pyproject.toml does not allow yet,
# to see whether the bound can be raised. Processes that tests start keep to the bound. The stamps go, so that the next
# run begins with what is pinned.
test-newest-jaxlib: PYTHON := $(or $(shell .ci/find-python 3.13),$(PYTHON))
test-newest-jaxlib: .venv-newest/dev.stamp ## what depends on the compiler, with the newest jaxlib in the registry
	rm .venv-newest/*.stamp
	$(PYTHON) -m pip --python .venv-newest/bin/python install --quiet --no-deps --upgrade jax jaxlib
	PULLBACK_TEST_ANY_JAXLIB=1 .venv-newest/bin/python -m pytest $(IN_TWO) -m "not slow" $(PYTEST_ARGS) $(ON_COMPILER) \
	    --ignore=tests/backends/compiler/test_releases.py

# Nothing may lean on the rounding of one processor: the numerical tests, with the kernels that NumPy's OpenBLAS and the
# compiler choose on others, by one thread (as the workers of each run have it) and, of Haswell, by two.
NUMERICAL = tests/grid tests/primitives tests/numpy tests/scipy/special tests/nn tests/random tests/control \
    tests/experimental tests/example_libraries tests/transforms/test_laws.py tests/public/test_spec_figures.py \
    tests/top_level/test_test_util.py tests/top_level/test_gradient_helpers.py
PROCESSORS = Haswell Zen SkylakeX Prescott
Haswell = OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=2 XLA_FLAGS=--xla_cpu_max_isa=AVX2
Zen = OPENBLAS_CORETYPE=Zen
SkylakeX = OPENBLAS_CORETYPE=SkylakeX
# Not with XLA held to SSE4_2 as well: without the instructions of AVX2 it cannot compile half precision.
Prescott = OPENBLAS_CORETYPE=Prescott OPENBLAS_NUM_THREADS=1

test-processors: $(PROCESSORS:%=test-processor-%) ## the numerical tests as other processors compute them

test-processor-SkylakeX: has = grep -q avx512f /proc/cpuinfo
test-processor-%: has = true
test-processor-%: .venv/dev.stamp
	@if $(has); then \
	    env $($*) .venv/bin/python -m pytest $(IN_TWO) -m "not slow" $(NUMERICAL) $(PYTEST_ARGS); \
	else \
	    echo "This processor lacks the instructions of $*: its tests are skipped"; \
	fi

# In a copy, for the suite looks for a directory of the standard's text, which a checkout without submodules lacks.
ARRAY_API_SUITE = .venv-array-api/suite
ARRAY_API_RUN = cd $(ARRAY_API_SUITE) && ARRAY_API_TESTS_MODULE=pullback.numpy $(CURDIR)/.venv-array-api/bin/python \
    -m pytest -q -p no:cacheprovider --disable-deadline --skips-file skips
SIGNATURES = array_api_tests/test_signatures.py

# Without 64 bits the suite must not draw their dtypes; its tests of signatures want them in their operands all the same.
science: .venv-bench/bench.stamp ## check and measure the functions for science, beside SciPy's and JAX's (SCIENCE_ARGS="--only eigsh --dry")
	PYTHONPATH=src .venv-bench/bin/python -m benchmarks.science $(SCIENCE_ARGS)

array-api: .venv-array-api/array-api.stamp ## the suite of the array API standard, with 64 bits and without
	rm -rf $(ARRAY_API_SUITE)
	cp -r $(ARRAY_API_TESTS) $(ARRAY_API_SUITE)
	chmod -R u+w $(ARRAY_API_SUITE)
	mkdir -p $(ARRAY_API_SUITE)/array-api/spec/2024.12/API_specification
	cp tests/numpy/array_api_skips.txt $(ARRAY_API_SUITE)/skips
	export PULLBACK_ENABLE_X64=1; $(ARRAY_API_RUN) array_api_tests $(ARRAY_API_ARGS)
	cat tests/numpy/array_api_skips_32_bits.txt >> $(ARRAY_API_SUITE)/skips
	export PULLBACK_ENABLE_X64=0; $(ARRAY_API_RUN) $(SIGNATURES) $(ARRAY_API_ARGS)
	export PULLBACK_ENABLE_X64=0 ARRAY_API_TESTS_SKIP_DTYPES=int64,uint64,float64,complex128; \
	    $(ARRAY_API_RUN) array_api_tests --ignore=$(SIGNATURES) $(ARRAY_API_ARGS)

mutants: .venv/dev.stamp ## plant faults, one at a time, and see that the tests find them (some minutes)
	.venv/bin/python -m tests.mutants

fuzz: .venv/dev.stamp ## random programs against what they have to be equal to (FUZZ_ARGS="--minutes 1 --seed 3")
	.venv/bin/python -m tests.fuzz $(FUZZ_ARGS)

fuzz-readers: .venv/dev.stamp ## damaged bytes for everything that reads bytes (READERS_ARGS="--count 12000 --seed 3")
	.venv/bin/python -m tests.fuzz.readers $(READERS_ARGS)

soak: .venv/dev.stamp ## many calls of each kind, and hours of mixed ones: does memory stay where it is? (SOAK_ARGS="kinds --calls 1000")
	.venv/bin/python -m tests.soak $(SOAK_ARGS)

lint: .venv/dev.stamp ## ruff, mypy, pyright, the floors of the house, sizes of functions and files
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/basedpyright --pythonpath .venv/bin/python
	.venv/bin/lint-imports --no-cache
	.venv/bin/python .ci/check_sizes.py src benchmarks docs ecosystem examples

typecheck: .venv/dev.stamp .venv-typecheck/typecheck.stamp ## users' programs, tests/typed, by mypy, pyright, ty and pyrefly
	.venv/bin/mypy tests/typed
	.venv/bin/basedpyright --pythonpath .venv/bin/python
	.venv-typecheck/bin/python .ci/typecheck.py --python .venv/bin/python

bench: .venv-bench/bench.stamp ## measure against JAX, PyTorch and autograd (BENCH_ARGS="--quick")
	@.venv-bench/bin/python -m compileall -q src  # as installation does for the peers
	.venv-bench/bin/python -m benchmarks $(BENCH_ARGS)

changes: .venv-bench/bench.stamp ## measure against the source tree in the folder BEFORE (CHANGES_ARGS="--only hvp")
	.venv-bench/bin/python -m benchmarks.changes $(BEFORE) $(CHANGES_ARGS)

# A Python with NumPy and ziglang, a compiler for other systems: python -m pip install numpy ziglang
TARGETS_PYTHON ?= $(PYTHON)
targets: ## compile the modules in C for other systems and processors (TARGETS_PYTHON has ziglang)
	$(TARGETS_PYTHON) -m tests.project.targets

stubs: .venv/dev.stamp ## write what type checkers know of the public names, the .pyi of src/
	.venv/bin/python -m tests.public.stubs

# These two and library-tests fetch for minutes on a new machine: each package that comes is a line.
names private-names library-tests: export PIP_SAYS = --progress-bar off

names: ## compare the documented names with the newest JAX that is pinned, and list the parameters of its functions
	@python=$$(.ci/find-python 3.13) && \
	$(MAKE) --no-print-directory .venv-3.13/dev.stamp PYTHON="$$python" && \
	.venv-3.13/bin/python -W ignore -m tests.public.documented_parameters

rules: .venv/dev.stamp ## write docs/rules.md: what each operation says of itself
	.venv/bin/python -m tests.project.rules_page

facts: .venv/dev.stamp ## write docs/generate/derivatives.json: in which arguments functions are differentiable (minutes)
	.venv/bin/python -m tests.docs.derivatives

pins: .venv-pins/pins.stamp ## write requirements/*.txt and ecosystem/*.txt from the lists *.in (PINS_ARGS="--upgrade")
	.venv-pins/bin/python .ci/lock_pins.py $(PINS_ARGS)

changelog: .venv-release/release.stamp ## join the files of changes/ to the section VERSION of CHANGELOG.md (VERSION=0.3.0 DATE=2026-12-24)
	.venv-release/bin/towncrier build --yes --version $(VERSION) --date $(DATE)

changelog-draft: .venv-release/release.stamp ## print that section, and leave the files
	.venv-release/bin/towncrier build --draft --version $(or $(VERSION),unreleased) --date $(DATE)

# Builds the wheel from the source distribution, and again from the tree: both must have the same bytes. Of ten points
# pyroma takes one each for the address and for mail that pyproject.toml lacks. abi3audit has nothing to look at: the
# modules in C are built for each Python.
DISTRIBUTION = build/distribution
check-distribution: export SOURCE_DATE_EPOCH = 1767225600
check-distribution: .venv-release/release.stamp ## build the distributions; check them, the recipe for conda, and the files of the host
	rm -rf $(DISTRIBUTION) build/lib* build/bdist* build/temp*
	.venv-release/bin/python -m build --no-isolation --outdir $(DISTRIBUTION)
	.venv-release/bin/python -m build --no-isolation --wheel --outdir $(DISTRIBUTION)/again
	cmp $(DISTRIBUTION)/*.whl $(DISTRIBUTION)/again/*.whl
	.venv-release/bin/twine check --strict $(DISTRIBUTION)/*.whl $(DISTRIBUTION)/*.tar.gz
	.venv-release/bin/check-wheel-contents $(DISTRIBUTION)/*.whl
	PIP_CONSTRAINT=requirements/release.txt .venv-release/bin/pyroma --min=8 .
	.venv-release/bin/python .ci/check_recipe.py conda/recipe.yaml
	.venv-release/bin/towncrier build --draft --version unreleased --date $(DATE) > /dev/null
	.venv-release/bin/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	.venv-release/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	@# The source distribution is without these.
	if [ -d .github ]; then \
	    .venv-release/bin/zizmor --offline .github && \
	    .venv-release/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml && \
	    .venv-release/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml && \
	    .venv-release/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml && \
	    .venv-release/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml; \
	fi

accuracy: .venv-bench/bench.stamp ## errors of all operations on elements in ulps, against mpmath (ACCURACY_ARGS="--only erf")
	PYTHONPATH=src .venv-bench/bin/python -m benchmarks.accuracy $(ACCURACY_ARGS)

# Programs of libraries written for JAX, in environments without it: ecosystem/check.py compares what they print.
ecosystem: .venv-ecosystem/ecosystem.stamp ## programs of JAX's libraries on Pullback (ECOSYSTEM_ARGS="--page" or "keras numpyro")
	@.venv-ecosystem/bin/python -m compileall -q src  # as installation does for JAX
	.venv-ecosystem/bin/python ecosystem/check.py $(ECOSYSTEM_ARGS)

ecosystem-quick: .venv-ecosystem-quick/quick.stamp ## the same, of optax, equinox and diffrax only
	.venv-ecosystem-quick/bin/python ecosystem/check.py optax equinox diffrax

ecosystem-record: .venv-ecosystem-jax/jax.stamp ## record what the programs print under the real JAX
	.venv-ecosystem-jax/bin/python ecosystem/record.py $(ECOSYSTEM_ARGS)

# Sources of libraries are read, and nothing of them is installed. JAX and some libraries need the syntax of newer Pythons.
private-names: ## which private names of JAX the newest releases of libraries use (PRIVATE_NAMES_ARGS="--page --renew")
	@python=$$(.ci/find-python 3.13) && \
	$(MAKE) --no-print-directory .venv-3.13/runtime.stamp PYTHON="$$python" && \
	.venv-3.13/bin/python -W ignore ecosystem/private_names.py $(PRIVATE_NAMES_ARGS)

# SciPy and scikit-learn are those of the tests' environment; ARRAY_API_FUNCTIONS_ARGS="--way served scipy.stats" runs less.
array-api-functions: .venv/dev.stamp ## functions of SciPy and scikit-learn on Pullback's arrays (ARRAY_API_FUNCTIONS_ARGS="--page")
	.venv/bin/python ecosystem/array_api_functions.py $(ARRAY_API_FUNCTIONS_ARGS)

# The newest release with what its tests need, in an environment of its own: nothing of that is pinned but Pullback.
library-tests: .venv/runtime.stamp .venv-pins/pins.stamp ## the tests of LIBRARY, by Pullback (LIBRARY_TESTS_ARGS="--count 0")
	.venv/bin/python ecosystem/library_tests.py $(LIBRARY) $(LIBRARY_TESTS_ARGS)

# Warnings are errors, and so are links to nothing. What pages and examples printed is kept in build/docs, until they or
# the library change. After a failure all pages are read again: Sphinx warns of a page only when it reads it.
docs: .venv-docs/docs.stamp ## build the site, build/docs/html: pages are executed, the reference is generated
	.venv-docs/bin/python -m sphinx --fail-on-warning --keep-going --nitpicky --jobs 2 --doctree-dir build/docs/doctrees \
	    docs build/docs/html $(DOCS_ARGS) || { rm -rf build/docs/doctrees; exit 1; }

# The system's Chromium visits the site; without one the tests are skipped. Those of other folders need what this
# environment lacks, and so does their conftest.py.
BROWSER_TESTS = .venv-docs/bin/python -m pytest --confcutdir=tests/docs/browser tests/docs/browser

docs-test: .venv-docs/docs.stamp ## all pages of the built site in a browser, after `make docs` (PYTEST_ARGS adds options)
	PULLBACK_SITE=build/docs/html $(BROWSER_TESTS) $(IN_TWO) $(PYTEST_ARGS)

docs-quick: .venv-docs/docs.stamp ## the same for a page of each kind, which it builds without executing cells
	$(BROWSER_TESTS) $(PYTEST_ARGS)

clean: ## remove environments, caches and build products
	rm -rf .venv .venv-* build dist docs/reference docs/programs src/*.egg-info .coverage .coverage.* htmlcov
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests examples benchmarks docs ecosystem -name __pycache__ -prune -exec rm -rf {} +

# An environment without pip of its own: the interpreter's pip fills it, which is quicker, and works where
# the interpreter comes without ensurepip. The package itself, which is built here, is the one thing without a hash.
%/runtime.stamp: requirements/runtime.txt pyproject.toml setup.py $(MODULES_IN_C)
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(PIP_INSTALL) -r requirements/runtime.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	$(PIP_CHECK)
	@touch $@

%/dev.stamp: requirements/dev.txt %/runtime.stamp
	$(PIP_INSTALL) -r requirements/dev.txt
	$(PIP_CHECK)
	@touch $@

.venv-array-api/array-api.stamp: requirements/array-api.txt .venv-array-api/runtime.stamp
	$(PIP_INSTALL) -r requirements/array-api.txt
	$(PIP_CHECK)
	@touch $@

.venv-docs/docs.stamp: requirements/docs.txt .venv-docs/runtime.stamp
	$(PIP_INSTALL) -r requirements/docs.txt
	$(PIP_CHECK)
	@touch $@

# PyTorch's build for CPUs alone is a fraction of the default one, if pip finds it.
.venv-bench/bench.stamp: requirements/bench.txt requirements/torch.txt requirements/torch-cpu.txt .venv-bench/runtime.stamp
	$(PIP_INSTALL) -r requirements/bench.txt
	$(PIP_INSTALL) -r requirements/torch-cpu.txt 2> /dev/null || $(PIP_INSTALL) -r requirements/torch.txt
	$(PIP_CHECK)
	@touch $@

.venv-pins/pins.stamp: requirements/pins.txt
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(PIP_INSTALL) -r requirements/pins.txt
	@touch $@

.venv-typecheck/typecheck.stamp: requirements/typecheck.txt
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(PIP_INSTALL) -r requirements/typecheck.txt
	@touch $@

.venv-release/release.stamp: requirements/release.txt
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(PIP_INSTALL) -r requirements/release.txt
	@touch $@

# Without `pip check`: what the libraries miss is JAX.
%/ecosystem.stamp: ecosystem/requirements.txt %/runtime.stamp
	$(PIP_INSTALL) -r $<
	@touch $@

.venv-ecosystem-quick/quick.stamp: ecosystem/requirements-quick.txt .venv-ecosystem-quick/runtime.stamp
	$(PIP_INSTALL) -r $<
	@touch $@

.venv-ecosystem-jax/jax.stamp: ecosystem/requirements-jax.txt .venv-ecosystem-jax/ecosystem.stamp
	$(PIP_INSTALL) -r $<
	@touch $@

.PRECIOUS: %/runtime.stamp %/dev.stamp %/ecosystem.stamp

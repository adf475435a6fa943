# make demo | test | bench | docs: each first makes the virtual environment if it does not exist.
# make docs writes the site of the documents to build/site, which opens without a server.

# To choose another Python: make PYTHON=python3.13 test
PYTHON ?= $(shell python3.11 --version >/dev/null 2>&1 && echo python3.11 || echo python3)
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
# A virtual environment belongs to one Python: .venv, or .venv-3.13 if another Python made .venv.
environment = $(shell test ! -e $(1) || grep -q '^version = $(VERSION)\.' $(1)/pyvenv.cfg \
	&& echo $(1) || echo $(1)-$(VERSION))
VENV := $(call environment,.venv)
FLARE := $(call environment,.venv-flare)
DOCS := $(call environment,.venv-docs)
BIN := $(VENV)/bin
# One BLAS thread per process, because two test processes share the cores.
export OPENBLAS_NUM_THREADS ?= 1

VANTAGE6 := .venv-vantage6
.PHONY: demo test test-machines test-flare test-vantage6 bench docs lint lock lock-site lock-vantage6 clean

demo: $(VENV)/installed
	@rm -rf build/demo
	@$(BIN)/vertibayes demo --out build/demo

LINT ?= lint
test: $(VENV)/installed $(LINT)
	$(BIN)/pytest -n 2 --dist worksteal

# Parties as processes, killed and restarted: ten minutes.
test-machines: $(VENV)/installed
	$(BIN)/pytest --machines tests/e2e/test_relay.py tests/e2e/test_processes.py \
		tests/e2e/test_analyst_killed.py tests/e2e/test_strangers.py tests/e2e/test_capture.py \
		tests/e2e/test_stopping.py tests/e2e/test_up.py tests/e2e/test_relay_log.py \
		tests/e2e/test_through_proxies.py \
		tests/e2e/test_naive_bayes_over_processes.py tests/e2e/test_naive_bayes_up.py \
		tests/e2e/test_calibration_over_processes.py tests/e2e/test_site_environment.py \
		tests/e2e/test_retry_over_processes.py \
		tests/e2e/test_analysts_at_once.py tests/e2e/test_roster_over_processes.py tests/e2e/test_operations.py \
		tests/e2e/test_tutorial.py tests/e2e/test_status_watch.py

# What needs NVFlare, in an environment of its own: a job of FLARE, and parties of release 0.1.0.
test-flare: $(FLARE)/installed
	$(FLARE)/bin/pytest tests/e2e/test_nvflare_job.py tests/e2e/test_upgrade.py

# The algorithm of vantage6 5, which needs Python 3.13 or newer, in an environment of its own.
test-vantage6: $(VANTAGE6)/installed
	cd integrations/vantage6 && PYTHONPATH=$(CURDIR) ../../$(VANTAGE6)/bin/pytest

PYTHON_VANTAGE6 ?= python3.13
$(VANTAGE6)/installed: requirements.lock integrations/vantage6/requirements.lock
	$(PYTHON_VANTAGE6) -m venv $(@D)
	$(@D)/bin/pip install -qq --disable-pip-version-check --require-hashes -r $<
	$(@D)/bin/pip install -qq --disable-pip-version-check --require-hashes --no-deps \
		-r integrations/vantage6/requirements.lock
	$(@D)/bin/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation \
		--editable . --editable integrations/vantage6
	@touch $@

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed
	$(BIN)/python benchmarks/price_of_privacy.py

# A link that leads nowhere ends the build, and so does a page that loads a file from another host.
docs: $(DOCS)/installed
	$(DOCS)/bin/python docs/figures/messages.py
	$(DOCS)/bin/python docs/site/pages.py build/pages
	$(DOCS)/bin/zensical build --clean --strict
	$(DOCS)/bin/python docs/site/check.py build/site

$(DOCS)/installed: requirements-docs.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install -qq --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(VENV)/installed: requirements.lock
$(FLARE)/installed: requirements-nvflare.lock
$(VENV)/installed $(FLARE)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "make: \
	$(PYTHON) does not run as Python 3.11 or newer; specify one: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install -qq --disable-pip-version-check --require-hashes -r $(filter %.lock,$^)
	@$(@D)/bin/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation \
		--editable .
	@touch $@

# For releases (docs/releasing.md), whose tools have an environment of their own.
RELEASING := $(call environment,.venv-release)
.PHONY: wheel test-wheel sbom audit release-check
wheel: $(RELEASING)/installed
	rm -rf build/dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(RELEASING)/bin/python -m build --outdir build/dist .

test-wheel: wheel
	$(RELEASING)/bin/python -m releasing.wheel build/dist

sbom: $(RELEASING)/installed
	$(RELEASING)/bin/python -m releasing.sbom requirements.lock build/sbom.json
	$(RELEASING)/bin/python -m releasing.sbom requirements-site.lock build/sbom-site.json

audit: $(RELEASING)/installed
	$(RELEASING)/bin/python -m releasing.audit requirements.lock

release-check:
	$(PYTHON) -m releasing.check

$(RELEASING)/installed: requirements-release.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install -qq --disable-pip-version-check --require-hashes -r $<
	@touch $@

# Renew the locks: the newest versions that pyproject.toml allows, with hashes, without an index.
COMPILE := uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock"
lock:
	$(COMPILE) --python-version 3.11 --universal --group test pyproject.toml -o requirements.lock
	$(COMPILE) --python-version 3.11 --universal --group test --group flare pyproject.toml \
		-o requirements-nvflare.lock
	$(COMPILE) --python-version 3.11 --universal --group docs -o requirements-docs.lock
	$(COMPILE) --python-version 3.11 --universal --group release -o requirements-release.lock
	$(MAKE) lock-site lock-vantage6

# What sites, dealer and relay load, out of the lock that the tests run with.
SITE := annotated-doc annotated-types cffi cryptography jinja2 markupsafe numpy pycparser pydantic \
	pydantic-core shellingham typer typing-extensions typing-inspection websockets
lock-site:
	awk -v names=" $(SITE) " '/^[a-z0-9]/ {name = $$1; sub(/[=[].*/, "", name); \
		keep = index(names, " " name " ")} /^#/ {keep = 1} keep' \
		requirements.lock >requirements-site.lock

# vantage6 pins releases of its own of some packages; all others are those of the other locks.
lock-vantage6:
	echo 'vantage6-algorithm-tools>=5.0.3,<5.1' >vantage6.in
	sed -n 's/^\([a-z0-9].*==[^\\]*[^ \\]\).*/\1/p' requirements.lock \
		| grep -vE '^(click|cryptography|pyjwt)==' >vantage6.constraints
	$(COMPILE) --python-version 3.13 -c vantage6.constraints vantage6.in \
		-o integrations/vantage6/requirements.lock
	rm vantage6.in vantage6.constraints

clean:
	rm -rf .venv .venv-* build .mypy_cache .ruff_cache .hypothesis

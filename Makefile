# make demo | test | bench: each makes the virtual environment first, if it is not there.

PYTHON ?= python3.11
BIN := .venv/bin
# Paths that the tests change into; one BLAS thread a process, as two processes share the cores.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-machines bench lint lock clean

demo: .venv/installed
	@$(BIN)/vertibayes demo

test: .venv/installed lint
	$(BIN)/pytest -n 2

# What needs NVFlare: parties as processes, killed and started again. Five minutes, after a larger installation.
test-machines: .venv-machines/installed
	.venv-machines/bin/pytest tests/e2e/test_nvflare.py tests/e2e/test_processes.py \
		tests/e2e/test_analyst_killed.py tests/e2e/test_strangers.py tests/e2e/test_capture.py \
		tests/e2e/test_stopping.py tests/e2e/test_up.py tests/e2e/test_attacks_on_the_relay.py

.venv-machines/installed: requirements-nvflare.lock pyproject.toml
	$(PYTHON) -m venv .venv-machines
	.venv-machines/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-nvflare.lock
	.venv-machines/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat --editable .
	@touch $@

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed
	$(BIN)/python benchmarks/price_of_privacy.py

.venv/installed: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is wanted; name yours: make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat --editable .
	@touch $@

# Renews the lock: the newest versions that pyproject.toml allows, with hashes, naming no index.
lock:
	uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url \
		--no-annotate --group test --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url \
		--no-annotate --group test --extra nvflare --custom-compile-command "make lock" pyproject.toml \
		-o requirements-nvflare.lock

clean:
	rm -rf .venv .venv-machines build *.egg-info .mypy_cache .ruff_cache .hypothesis

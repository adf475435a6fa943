# make demo | test | bench: each makes the virtual environment first, if it is not there.

PYTHON ?= python3.11
BIN := .venv/bin
# Paths that the tests change into; one BLAS thread a process, as two processes share the cores.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test bench lint lock clean

demo: .venv/installed
	@$(BIN)/vertibayes demo

test: .venv/installed lint
	$(BIN)/pytest -n 2

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

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .hypothesis

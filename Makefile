# Needs make and Python 3.10, 3.11 or 3.12 with its venv module, nothing else.
# Another Python than the newest found:  make clean, then  make test PYTHON=/path/to/python3.11

SUITS := -c "import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))"
PYTHON ?= $(shell for python in python3.12 python3.11 python3.10 python3; do \
	$$python $(SUITS) 2>/dev/null && echo $$python && break; done)
# Without bytecode every process would compile the packages, and every worker of pytest its tests.
unexport PYTHONDONTWRITEBYTECODE
, := ,
PYTEST = .venv/bin/pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder
ASKED = --constraint constraints.txt --editable
# By uv, which takes half the time; by pip where uv is not to be had, or does not find a package.
install = .venv/bin/uv pip install --quiet --python .venv/bin/python --compile-bytecode \
	$(ASKED) "$(1)" || { .venv/bin/pip install --disable-pip-version-check --no-compile \
	$(ASKED) "$(1)" && .venv/bin/python -m compileall -q -j 0 .venv/lib; }

.PHONY: help
help: ## List the targets
	@awk -F ': .*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: .venv/installed ## Train on the phantom study and write a report, in runs/demo
	.venv/bin/surgagg demo --out runs/demo --force

.PHONY: real
real: nih .venv/installed-pretrained ## The same on real NIH images and weights, in runs/real: make real NIH=<folder>
	rm -rf runs/real-sites runs/imagenet.npz
	.venv/bin/surgagg data partition "$(NIH)" --out runs/real-sites
	.venv/bin/surgagg model init runs/imagenet.npz --backbone efficientnet_lite0 \
		--weights imagenet --image-size 128
	.venv/bin/surgagg run surgical --site-files runs/real-sites --sites nih-1,nih-2 \
		--initial-body runs/imagenet.npz --preset radiology --preset recommended \
		--set backbone=efficientnet_lite0 --set image_size=128 --set batch_size=32 \
		--set num_rounds=8 --local-models --published --out runs/real --force

.PHONY: picture
picture: demo ## Retake README's picture of the demo's report, with chromium
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1200,1130 \
		--screenshot=docs/pictures/report.png "file://$(CURDIR)/runs/demo/report/report.html"

.PHONY: nih
nih:
	@test -n "$(NIH)" || { echo "make real needs the folder of Data_Entry_2017*.csv and the" \
		"images; got none. For example: make real NIH=data/nih" >&2; exit 2; }
	@ls "$(NIH)"/Data_Entry_2017*.csv* >/dev/null 2>&1 || { echo "make real needs the folder of" \
		"Data_Entry_2017*.csv and the images; there is none in $(NIH)." >&2; exit 2; }

.PHONY: quick
quick: .venv/installed-dev ## Run the tests that need no TensorFlow and no FLARE process: after every change
	HYPOTHESIS_PROFILE=dev $(PYTEST) --tier=quick $(PYTEST_ARGS)

.PHONY: test
test: .venv/installed-dev ## Run all tests; some of them: make test PYTEST_ARGS=tests/cxr_study
	$(PYTEST) $(PYTEST_ARGS)

.PHONY: check
check: .venv/installed-dev ## Lint, format, types and refused words
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/pre-commit run words --all-files

.PHONY: matrix
matrix: .venv/installed ## The quick tests with Python 3.10 to 3.12, on the newest and the oldest dependencies
	.ci/matrix $(PYTEST_ARGS)

.PHONY: dist
dist: .venv/installed ## Build sdist and wheel in dist, and run the demo of the wheel without this clone
	rm -rf dist
	.venv/bin/uv build --quiet --out-dir dist
	.ci/demo-of-wheel dist/*.whl

.PHONY: mutants
mutants: .venv/installed-dev ## Change the product in 100 ways, one at a time; list changes that no test notices
	.venv/bin/python tests/mutants.py $(MUTANTS_ARGS)

.PHONY: docs
docs: .venv/installed-docs .venv/installed-dev ## Build the site; dead links, undocumented names fail
	.venv/bin/pytest -n 0 -q tests/test_public_names.py
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

.PHONY: jobs
jobs: .venv/installed ## Export the job folders, by FLARE
	.venv/bin/python -m cxr_study.jobs.job_export jobs

.PHONY: pins
pins: .venv/installed ## Resolve constraints.txt for every supported Python
# Without hashes: with them pip, which installs where uv is missing, refuses an editable install.
	.venv/bin/pip install --disable-pip-version-check --upgrade uv
	.venv/bin/uv pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.10 \
		--no-python-downloads --upgrade --no-annotate --custom-compile-command "make pins" \
		--output-file constraints.txt

.PHONY: clean
clean: ## Remove the environment, the runs and the caches
	rm -rf .venv runs build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/installed: pyproject.toml constraints.txt
	@"$(PYTHON)" $(SUITS) 2>/dev/null || { echo "Python 3.10, 3.11 or 3.12 with its venv module is" \
		"needed; got '$(PYTHON)'. Install one (Debian: apt install python3-venv), or give its" \
		"path: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	"$(PYTHON)" -m venv .venv
	-.venv/bin/pip install --disable-pip-version-check --quiet uv
	$(call install,.[cxr])
	@touch $@

.venv/installed-pretrained: .venv/installed
	$(call install,.[cxr$(,)pretrained])
	@touch $@

.venv/installed-docs: .venv/installed
	$(call install,.[cxr$(,)docs])
	@touch $@

.venv/installed-dev: .venv/installed
	$(call install,.[dev])
	@touch $@

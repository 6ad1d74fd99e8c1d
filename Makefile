# make grade [SUBMISSION=path] [ARGS="--tests t01..t05"]   grade a submission; sets everything up the first time
# make grade ASSIGNMENT=backward                           grade a model solution of another assignment
# make test                                                lint, types and tests; sets everything up the first time
# make redteam                                             hostile programs: none may get what it wants (minutes); those in Python if Triton is installed
# make honest                                              unusual honest programs: all must pass (minutes)
# make test-site                                           the pages in a real browser; as root it installs Chromium
# make test-slurm                                          a class on a real two-node Slurm, as root; it installs Slurm
# make test-emulator                                       the emulator's own tests, and what the grader says of what it finds; ARGS=--share: those that CI runs
# make test-isa                                            the emulator on other processors' instructions, Arm's under qemu
# make test-triton                                         Python submissions; it installs Triton
# make setup                                               only the set-up
# make clean                                               remove what set-up and runs made (not the testcases)

SUBMISSION ?= $(firstword $(wildcard $(addprefix reference/$(or $(ASSIGNMENT),hw4)/,tiled.cu online.cu naive.cu *.cu)))
PYTHON ?= python3
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE := # empty: with compiled modules a worker process starts in two thirds of the time

grade: .venv/.ready
	@$(BIN)/grader grade "$(SUBMISSION)" $(if $(ASSIGNMENT),--assignment $(ASSIGNMENT)) $(ARGS)

test: .venv/.ready-test
	$(BIN)/ruff check grader emulator tests tools benchmarks
	$(BIN)/ruff format --check grader emulator tests tools benchmarks
	@$(MAKE) --no-print-directory -j2 .types .tests

.types: # on the core that pytest leaves idle while it starts and ends
	$(BIN)/mypy

.tests: # one more than cores, since tests wait for each other's processes and for limits
	$(BIN)/python -m pytest -n $$(($$(nproc) + 1)) --dist worksteal

redteam: .venv/.ready-test
	$(BIN)/python -m tests.redteam $(ARGS)
	$(BIN)/python -m tests.redteam.judge $(filter --landlock,$(ARGS))

honest: .venv/.ready-test
	$(BIN)/python -m tests.honest $(ARGS)

test-site: .venv/.ready-test
	@tools/setup.sh test-site
	$(BIN)/python -m pytest tests/browser

test-slurm: .venv/.ready-test
	@tools/setup.sh test-slurm
	$(BIN)/python -m pytest --durations=5 tests/slurm

test-emulator: .venv/.ready-test
	$(BIN)/python -m pytest -n auto --dist worksteal emulator/tests tests/emulated $(ARGS)

test-isa: .venv/.ready-test
	@tools/setup.sh test-isa
	$(BIN)/python -m pytest -n auto tests/isa $(ARGS)

test-triton: .venv/.ready-test
	@tools/setup.sh test-triton
	$(BIN)/python -m pytest -n auto tests/triton $(ARGS)

setup: .venv/.ready

.venv/.ready: pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" tools/setup.sh

.venv/.ready-test: .venv/.ready
	@PYTHON="$(PYTHON)" tools/setup.sh test

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache *.egg-info emulator/src/*.egg-info
	find benchmarks emulator grader tests tools -name __pycache__ -prune -exec rm -rf {} +

.PHONY: grade test .types .tests redteam honest test-emulator test-site test-slurm test-isa test-triton setup clean

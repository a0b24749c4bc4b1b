# SPDX-License-Identifier: Apache-2.0
# The front door: thin wrappers over the openvta command and the test runner. `make help` lists them.

CONFIG ?= default
SEED   ?= 1
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.openvta-setup
SPREAD := -n $(JOBS) --dist loadfile  # test files over processes; builds are shared through the cache

export OPENVTA_JOBS := $(JOBS)

.PHONY: help setup demo test test-all lint format verilog sim bench docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 14
	@echo "variables: CONFIG=$(CONFIG) SEED=$(SEED) JOBS=$(JOBS) PYTHON=$(PYTHON)"

setup: $(STAMP) ## make the virtual environment with every tool that comes as a package

$(STAMP): pyproject.toml tools/setup.py
	$(PYTHON) tools/setup.py --venv $(VENV) --stamp $(STAMP)

demo: setup ## compile the digit networks, run them on the simulator and on the RTL, write build/demo/
	$(BIN)/openvta demo --out build/demo

test: setup ## everything that guards a change (see tests/)
	$(BIN)/python -m pytest --seed $(SEED) $(SPREAD)

test-all: setup ## test, and the long campaigns
	$(BIN)/python -m pytest --seed $(SEED) $(SPREAD) --long

lint: setup ## ruff, mypy, import directions, generated files, scalafmt, Verilator lint of every named configuration
	$(BIN)/python tools/lint.py

format: setup ## rewrite Python and Scala sources in the project's style
	$(BIN)/ruff format hardware/spec sim compiler driver tests tools
	$(BIN)/ruff check --fix hardware/spec sim compiler driver tests tools
	$(BIN)/python tools/lint.py --fix scalafmt

verilog: setup ## SystemVerilog of CONFIG in build/CONFIG/
	$(BIN)/openvta elaborate --config $(CONFIG) --out build/$(CONFIG)

sim: setup ## build the simulator of CONFIG
	$(BIN)/openvta elaborate --config $(CONFIG) --out build/$(CONFIG) --simulator

bench: setup ## every benchmark, figures in build/bench/
	mkdir -p build/bench
	$(BIN)/openvta bench layer --json build/bench/layer.json
	$(BIN)/openvta bench fsim --json build/bench/fsim.json
	$(BIN)/openvta bench resnet18 --json build/bench/resnet18.json
	$(BIN)/openvta bench scaling --json build/bench/scaling.json
	$(BIN)/openvta bench cosim --json build/bench/cosim.json
	$(BIN)/openvta bench hls --json build/bench/hls.json

docs: setup ## rewrite the generated pages
	$(BIN)/openvta spec emit

clean: ## remove everything that was built (the virtual environment and the build cache too)
	rm -rf build $(VENV) hardware/chisel/target hardware/chisel/project/target hardware/chisel/project/project
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# SPDX-License-Identifier: Apache-2.0
# A thin front door: each target is one command that works without make as well.
.DEFAULT_GOAL := help
.PHONY: help build demo demo-stop shell test test-unit test-gpu attack lint format image wheel generate bench fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## a real Kubernetes on this machine with four placed ranks on it (root or sudo; 15 minutes the first time)
	@deploy/demo.sh

shell: ## a shell in which kubectl and helm work on the demo's cluster
	@deploy/demo.sh shell

demo-stop: ## stop the demo and leave nothing behind
	@deploy/demo.sh stop

build: ## compile everything with sanitizers, into build/dev
	@deploy/deps.sh build
	cmake --preset dev
	cmake --build --preset dev

test: ## all tests, on a real Kubernetes too; installs what they need
	@tests/run.sh

test-unit: ## only the tests that need no cluster and no torch, in build/dev
	@tests/run.sh --unit

test-gpu: ## run the CUDA modules on this machine's GPU; writes docs/benchmarks/gpu.md
	@deploy/deps.sh cuda || echo "what needs these packages will be skipped"
	@tests/gpu/test_gpu.sh --report docs/benchmarks/gpu.md

lint: ## house rules, shellcheck, format, clang-tidy
	@deploy/deps.sh test tidy
	@python3 tests/lint/lint.py
	@python3 tests/lint/lint.py --shellcheck
	@tests/lint/format.sh
	@tests/lint/tidy.sh

format: ## format the C sources as .clang-format says
	@deploy/deps.sh format
	@tests/lint/format.sh --write

image: ## build the container images: operator, worker, example
	@deploy/images.sh

wheel: ## build the Python wheels with all programs, dist/cadre_sdk-*.whl
	@deploy/wheel.sh

generate: ## write the generated files again: the chart's CRDs and versions, deploy/install.yaml
	@deploy/generate.sh

bench: ## measure groups against bare pods on 1,000 fake nodes (root or sudo; five minutes)
	@deploy/deps.sh build
	@bench/groups/run.sh

attack: ## attack an installed operator for longer than make test does (root or sudo; ten minutes)
	@deploy/deps.sh test
	@cmake --preset ci >/dev/null && cmake --build --preset ci
	@CADRE_ATTACK_SECONDS=$${CADRE_ATTACK_SECONDS:-30} ctest --preset ci -R attack_attack -V

fuzz: ## fuzz each target for 60 seconds (FUZZ_SECONDS=N for another time)
	@deploy/deps.sh fuzz
	@tests/fuzz/run.sh

clean: ## remove build/ and dist/; images and clusters stay (make demo-stop, rm -r ~/.cache/cadre)
	rm -rf build dist

# Entry points of a checkout. What they make stays in .venv, .build and build; `make clean` removes it.
# The checks themselves are in tools/checks.py, the bed in extensions/molecule/testbed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
# A bare host has no locale set; Ansible refuses to start outside UTF-8.
export LC_ALL := C.UTF-8

PY := .venv/bin/python
BED := $(PY) extensions/molecule/testbed/testbed.py
CHECKS := lint unit integration spark build molecule molecule-secure crash-tests crash-tests-all crash-tests-rollback drill test test-full test-fresh test-e2e test-verify test-faults test-rollback

.PHONY: help setup demo $(CHECKS) lock testbed-up testbed-down testbed-reset testbed-ssh clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z].*:.*## / { sub(/:.*/, "", $$1); printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: setup ## the main job: a live cluster on the bed goes from ZooKeeper to KRaft under load
	@$(PY) -m tools.demo

test: setup ## all fast checks: lint, unit, integration, build, molecule, crash-tests
test-full: setup ## the long checks: molecule-secure, test-fresh, test-e2e, test-verify, test-faults, test-rollback, crash-tests-all, crash-tests-rollback, drill, spark
lint: setup ## ruff, yamllint, ansible-lint (production), ansible-test sanity, shellcheck
unit: setup ## unit tests, target-side code on the oldest target Python too
integration: setup ## tests against servers that they start themselves (Kafka, ZooKeeper)
spark: setup ## the verification jobs on integration Spark, against servers that the tests start themselves
build: setup ## build the collection, install the tarball elsewhere, check that it works there
molecule: setup ## molecule scenario `default` on the bed
molecule-secure: setup ## molecule scenario `secure`: every listener secured, controllers with a principal of their own
crash-tests: setup ## one migration whose control process is killed at 3 records of its journal and 10 random moments
crash-tests-all: setup ## the same, killed before and after every record
crash-tests-rollback: setup ## a way back from dual-write to plain ZooKeeper mode, killed before and after every record
drill: setup ## migrations and a way back that are broken on purpose, fault after fault, under clients that lose nothing
test-fresh: setup ## setup, lint, unit, integration and build on a new minimal Debian with empty caches
test-e2e: setup ## on the bed: the main job with a controller killed, every refusal, a probe host of its own, no secrets anywhere
test-verify: setup ## on the bed: the comparison under clients, with differences planted, with Spark, brokers and disks that fail
test-faults: setup ## on the bed: migrations that are broken on purpose and go on: claims, turns, kills, hosts cut off
test-rollback: setup ## on the bed: migrations that are taken back, from everywhere, and a ZooKeeper that is restored; both secured as well
$(CHECKS):
	@$(PY) -m tools.checks $@

testbed-up: setup ## start the bed: systemd hosts with ZooKeeper, Kafka brokers and prepared controllers
	@$(BED) up
testbed-down: setup ## stop the bed and remove its containers and network
	@$(BED) down
testbed-reset: setup ## put the bed back to a ZooKeeper-mode cluster
	@$(BED) reset
testbed-ssh: setup ## a shell on a host of the bed: make testbed-ssh HOST=b1
	@$(if $(HOST),,echo 'name a host of the bed: make testbed-ssh HOST=b1' >&2; exit 2;) $(BED) ssh $(HOST)

setup: ## install what is missing: system packages, .venv, the link for Ansible
	@tools/setup

lock: setup ## make requirements.txt from requirements.in
	@tools/lock

clean: ## remove containers, network and storage of the bed, .build, build and .venv
	@tools/clean

# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Entry points of a checkout. They write only to .venv, .build and build; `make clean` removes these.
# tools/checks.py has the checks, tests/system/testbed the testbed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
# Ansible does not start without a UTF-8 locale, and a bare host has none.
export LC_ALL := C.UTF-8

PY := .venv/bin/python
TESTBED := $(PY) -m tests.system.testbed
CHECKS := lint docs sanity unit integration integration-long spark spark-standalone build cores cores-quick molecule molecule-secure crash-tests crash-tests-all crash-tests-rollback crash-tests-sudo failure-proof failure-sample drill simulate zk-to-zk test test-full test-fresh test-e2e test-verify test-faults test-rollback test-layout test-security test-restarts test-files test-releases journey stalls

.PHONY: help setup demo model $(CHECKS) lock testbed-up testbed-down testbed-reset testbed-ssh clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z].*:.*## / { sub(/:.*/, "", $$1); printf "  make %-20s %s\n", $$1, $$2 }' Makefile

demo: setup ## migrate a live cluster on the testbed from ZooKeeper to KRaft under load
	@$(PY) -m tests.system.demo

model: setup ## 10,000 random histories of a migration through the gates: no wrong verdict; make model SEED=7 plays one again
	@$(if $(SEED),PYTHONPATH=spark:.build $(PY) -m tests.unit.spark.model --first $(SEED) --histories 1,$(PY) -m tools.checks $@)

test: setup ## the fast checks: lint, unit, build, failure-sample, integration, molecule
test-full: setup ## the long checks: molecule-secure, test-fresh, test-e2e, test-verify, test-faults, test-rollback, test-layout, test-security, test-restarts, crash-tests, crash-tests-all, crash-tests-rollback, crash-tests-sudo, drill, docs, sanity, integration-long, simulate, model, zk-to-zk, test-files, test-releases, cores-quick, cores, spark, spark-standalone
lint: setup ## ruff, mypy, shellcheck, prose, yamllint, ansible-lint (production), reuse, antsibull-changelog, antsibull-docs, ansible-test sanity
docs: setup ## the docs site in build/docs/html: warnings are errors, links are checked
sanity: setup ## ansible-test sanity under every Python that ansible-core supports
unit: setup ## unit tests; code for managed hosts also on the oldest target Python
integration: setup ## tests against Kafka and ZooKeeper servers that the tests start
integration-long: setup ## those of these tests that take more than a minute each
spark: setup ## the verification jobs on a real Spark, against servers that the tests start
spark-standalone: setup ## the comparison on a standalone cluster of two workers without the driver's files
build: setup ## build the collection, install the tarball outside the checkout, check it there
cores: setup ## the tests that play, a sample of failures and playbooks on real servers, on each supported ansible-core but the pinned one
cores-quick: setup ## what differs between releases of ansible-core, on the oldest and the newest
molecule: setup ## molecule scenario `default` on the testbed
molecule-secure: setup ## molecule scenario `secure`: every listener secured, controllers with their own principal
crash-tests: setup ## a migration whose control process is killed at 2 journal records and 3 random moments
crash-tests-all: setup ## a migration whose control process is killed before and after every journal record
crash-tests-rollback: setup ## a rollback from dual-write to ZooKeeper mode, killed before and after every journal record
crash-tests-sudo: setup ## a migration killed at 9 points, on hosts with sudo, where logind kills what a login leaves running
failure-proof: setup ## every module call of every playbook fails in every way, on a simulated cluster; hours
failure-sample: setup ## a sample of failure-proof: one case of each of six scenarios
simulate: setup ## 100,000 simulated moves to another ZooKeeper ensemble with crashes, reloads of filter tables, reboots and lost orders
zk-to-zk: setup ## a move to another ZooKeeper ensemble with injected faults, while verification clients and another application run
drill: setup ## migrations and a rollback with injected faults, while verification clients run
stalls: setup ## on the testbed: how long clients wait in ten migrations, held against plain restarts
journey: setup ## on the testbed: from Kafka 3.7.2 with ZooKeeper to 3.9.2, to KRaft, to 4.1.1, under verification clients
test-fresh: setup ## setup, lint, unit, integration and build on a new minimal Debian with empty caches
test-e2e: setup ## on the testbed: a migration with a controller failover, refusals, a separate probe host, no secrets in output
test-verify: setup ## on the testbed: the verification under load, with planted differences, with failures of Spark, brokers and disks
test-faults: setup ## on the testbed: run locks, interrupted runs, killed workers, automatic reverts, unreachable hosts
test-rollback: setup ## on the testbed: rollbacks from every phase, and the restore of ZooKeeper; also on the secured testbed
test-layout: setup ## on the testbed: forward, back and to the end on a cluster with other ids, names, ports and paths, on three hosts with broker and controller each, and on one as cp-ansible sets it up
test-security: setup ## on the testbed: forward, back and to the end with passwords and ZooKeeper by TLS, with certificates, with tokens, and with Kerberos
test-restarts: setup ## on the testbed: rolling restarts of racks against one broker at a time, with failures; a migration and a rollback in batches
test-files: setup ## 20,000 generated files and reassignments, each read as Java, Kafka and ZooKeeper read it
test-releases: setup ## the table of Kafka's releases, and 200 random messages of each kind, against the classes of every release
$(CHECKS):
	@$(PY) -m tools.checks $@

testbed-up: setup ## start the testbed: systemd hosts with ZooKeeper, Kafka brokers and prepared controllers
	@$(TESTBED) up
testbed-down: setup ## stop the testbed and remove its containers and network
	@$(TESTBED) down
testbed-reset: setup ## reset the testbed to a ZooKeeper-mode cluster
	@$(TESTBED) reset
testbed-ssh: setup ## open a shell on a host of the testbed: make testbed-ssh HOST=b1
	@$(if $(HOST),,echo 'HOST is not set: make testbed-ssh HOST=b1' >&2; exit 2;) $(TESTBED) ssh $(HOST)

setup: ## install missing parts: system packages, .venv, the link for Ansible
	@tools/setup

lock: setup ## pin requirements.in in requirements.txt
	@tools/lock

clean: ## remove the testbed's containers, network and storage, .build, build and .venv
	@tools/clean

# make (without a target) lists what can be made. Flags for the commands that
# are run go into ARGS: make bench ARGS='--json out.json'

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
FUZZTIME    ?= 30s
ROUNDS      ?= 100
ARGS        ?=

# Pinned, and not in go.mod: the library does not depend on it.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# One test binary at a time: several measure latency, and the processors of a
# small machine are needed for the servers. The time limit is per package.
TESTFLAGS   ?= -p 1 -timeout 5m

.PHONY: help test unruly check needs build demo bench peers simulate fuzz

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' Makefile

test: needs check ## Check the sources and run every test under the race detector
	$(GO) build -race ./...
	$(GO) test -race $(TESTFLAGS) ./...

unruly: needs ## Fight for locks over bad links with 16 threads, ROUNDS times: nothing lost, nothing left
	$(GO) test -race -cpu 16 -count $(ROUNDS) -timeout 1h -run 'mixed_fleet|unruly' ./redlock

check: ## go vet, gofmt and staticcheck
	$(GO) vet ./...
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "run gofmt -w on:" $$unformatted >&2; exit 1; fi
	$(GO) run $(STATICCHECK) ./...
	@if [ -f bench/peers/go.mod ]; then cd bench/peers; set -x; $(GO) vet ./...; fi

needs: ## Install what the tests need: redis-server, libfaketime, gcc for the race detector
	@missing=; \
	command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	command -v gcc >/dev/null || missing="$$missing gcc libc6-dev"; \
	compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing="$$missing libfaketime"; \
	if [ -z "$$missing" ]; then exit; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "The tests need$$missing. On Debian and Ubuntu: sudo apt-get install$$missing" >&2; exit 1; fi; \
	set -x; export DEBIAN_FRONTEND=noninteractive; \
	apt-get update -qq; apt-get install -y -qq --no-install-recommends $$missing

build: ## Build the command: bin/redlock
	$(GO) build -o bin/redlock ./cmd/redlock

demo: build ## Watch a lock survive the loss of two of five masters
	bin/redlock demo $(ARGS)

bench: needs build ## Measure what a quorum costs, on real servers, and compare with the goals
	bin/redlock bench --redis --full $(ARGS)

peers: needs ## Measure the other libraries beside this one (bench/peers)
	cd bench/peers && $(GO) run . $(ARGS)

simulate: build ## Run 100,000 random schedules of faults: zero violations
	bin/redlock simulate --seeds 100000 $(ARGS)

fuzz: ## Run every fuzz test for FUZZTIME each
	@grep -rEo --include='*_test.go' --exclude-dir=peers '^func Fuzz\w+' . | sort | while IFS=: read -r file func; do \
		(set -x; $(GO) test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "$${file%/*}"); done

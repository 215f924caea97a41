# make (without a target) lists what can be made. Flags for the commands that
# are run go into ARGS: make bench ARGS='--html out.html'

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
FUZZTIME    ?= 30s
ROUNDS      ?= 100
ARGS        ?=

# Pinned, and not in go.mod: the library does not depend on it.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

GOFMT = unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted >&2; exit 1; fi

# A schedule of the simulator is one goroutine, in which the race detector finds nothing: it
# looks on where schedules, or processes, run side by side.
SIM     := ./simulate/... ./cmd/redlab ./internal/chaos
SIDE    := production_transport|[Hh]ow_many_workers|stands_still|[Pp]anic|Demo|A_run_without
# Thousands of waiters, and stories of one guard, are checked as well without it, and with it they
# take minutes and gigabytes.
CROWDS  := ^(TestL23_a_m|TestReal_L46|TestOne_|TestS71_what)
# Most of these tests wait, so two packages run at a time. Those of redlock/ run alone: their leases are short.
OTHERS   = $$($(GO) list ./... | grep -vE '/(quorumlock/redlock|redlab|simulate(/.*)?|internal/(chaos|mutate))$$')
# As a new user, from an empty module cache: make fresh. make check has vetted what make test runs.
NEWCOMER := [Ff]resh_user

.PHONY: help quick test long clocks unruly durable check elsewhere needs build demo bench distance peers covered simulate chaos mutate fuzz

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' Makefile

quick: ## go vet, gofmt and the tests that need no server: 1 minute
	$(GO) vet ./...
	@$(GOFMT)
	REDISTEST_SERVER=none $(GO) test -p 4 -short -skip '^(TestReal|TestModel_answers|TestL23|TestEvery_wrong_rule|TestNo_promise_breaks_in_any_order)' ./drift ./quorum ./node/... ./redlock/... ./redlocktest ./simulate/...
	$(GO) test -run 'Every_failure|Each_argument|Every_page|Every_help' ./cmd/...

test: needs check ## Check the sources and run every test, most under the race detector: 6 to 10 minutes
	$(GO) test -count 1 -vet off -race -timeout 20m -skip '$(NEWCOMER)|$(CROWDS)' ./redlock
	$(GO) test -count 1 -vet off -race -p 2 -timeout 20m -skip '$(NEWCOMER)|$(CROWDS)' $(OTHERS)
	$(GO) test -count 1 -vet off -race -p 2 -timeout 20m -run '$(SIDE)' $(SIM)
	$(GO) test -count 1 -vet off -p 2 -timeout 20m -run '$(CROWDS)' ./redlock ./node/guard
	$(GO) test -count 1 -vet off -p 2 -timeout 20m -skip '$(SIDE)' $(SIM) ./internal/mutate

long: needs ## Run all schedules of the simulator's tests, ten times as many as make test, and all hostile masters: 4 to 6 minutes
	$(GO) test -count 1 -timeout 30m ./simulate -long
	REDLOCK_LONG=1 $(GO) test -count 1 -timeout 10m -run TestL23_a_m ./redlock

clocks: needs ## One wrong clock on real masters, at TTLs of 0.5 to 30 s, no two holders: 2 minutes
	REDLOCK_LONG=1 $(GO) test -count 1 -timeout 20m -parallel 12 -run TestReal_S47_one_wrong_clock ./redlock -v | grep -E '^ *(---|real_clock|ok|FAIL)'

unruly: needs ## Fight for locks over bad links with 16 threads, ROUNDS times: nothing lost, nothing left: 12 minutes
	$(GO) test -race -cpu 16 -count $(ROUNDS) -timeout 1h -run 'mixed_fleet|unruly' ./redlock

durable: needs ## Run the tests on real servers with an append-only file, and on Valkey where it is installed
	for sync in always everysec; do (set -x; REDISTEST_APPENDFSYNC=$$sync $(GO) test -count 1 -timeout 30m -run TestReal ./node ./redlock); done
	@if command -v valkey-server >/dev/null; then set -x; REDISTEST_SERVER=valkey-server $(GO) test -count 1 -p 1 -timeout 30m ./node ./redlock; fi

check: ## go vet, gofmt and staticcheck: half a minute
	$(GO) vet ./...
	@$(GOFMT)
	$(GO) run $(STATICCHECK) ./...

elsewhere: ## go vet for macOS and of bench/peers, a build for Windows, the adapters for Prometheus and OpenTelemetry: a minute
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) build -o /dev/null ./cmd/... ./redlock ./redlocktest ./simulate ./examples/...
	@if [ -f bench/peers/go.mod ]; then cd bench/peers; set -x; $(GO) vet ./...; fi
	cd contrib/redlockprom && $(GO) vet ./... && $(GO) test -run TestEvery_event_is_counted ./...
	cd contrib/redlockotel && $(GO) vet ./... && $(GO) test ./...

needs: ## Install what the tests need: redis-server, libfaketime, gcc for the race detector
	@.ci/install redis-server gcc libfaketime

build: ## Build the commands: bin/redlock and bin/redlab
	$(GO) build -o bin/ ./cmd/redlock ./cmd/redlab

demo: build ## Watch a lock survive the loss of two of five masters: 20 seconds, once it is built
	bin/redlab demo $(ARGS)

bench: needs build ## Measure what a quorum costs, on real servers, and compare with the goals: 4 minutes
	bin/redlab bench --redis --full $(ARGS)

distance: needs build ## Measure with masters 1 and 10 ms away, and far from each other; about six minutes, ARGS=--quick one
	bin/redlab bench --redis --masters 5 --rtt 1ms,10ms --rtt near=0.5ms*3,far=20ms*2 $(ARGS)

peers: needs ## Measure the other libraries beside this one (bench/peers)
	cd bench/peers && $(GO) run . $(ARGS)

covered: ## Print how many of the transport's statements the simulator runs
	@mkdir -p bin
	$(GO) test -run '[Tt]ransport' -coverpkg ./node -coverprofile bin/covered.out ./simulate
	$(GO) tool cover -func bin/covered.out | tail -1

simulate: build ## Run 100,000 random schedules of faults: zero violations: 40 minutes
	bin/redlab simulate --seeds 100000 $(ARGS)

chaos: needs ## Break real masters and clients for minutes: no two holders (ARGS='--seed 7')
	$(GO) run ./internal/cmd/chaos $(ARGS)

mutate: needs ## Break the code in a copy, line by line: who notices? (ARGS='-shard 1/10', '-by simulator')
	$(GO) run ./internal/mutate $(ARGS)

.PHONY: restarts
restarts: needs ## Restart all masters under 10,000 leases, end all their connections, and time the first lock with the default guard
	$(GO) test -count 1 -timeout 15m -v -run 'rolling_restart|first_lock|same_instant' ./redlock -leases 10000 -guard 30s | grep -E '^ *(---|ok|FAIL|real_)'

.PHONY: contrib
CONTRIB := redlockprom redlockotel redlockgocron redlockcertmagic redlockgoose fencesql
contrib: ## Test the modules in contrib, with a real Prometheus, PostgreSQL and MariaDB, which are installed on Debian: 1 minute
	@.ci/install prometheus postgresql mariadb-server-core mariadb-client-core
	for module in $(CONTRIB); do (set -x; cd contrib/$$module; $(GO) vet ./...; $(GO) test ./...); done

.PHONY: fresh
FRESH ?= -all
fresh: needs ## Go a new user's way: empty module cache, five masters, first lock; with FRESH=-all also a real Prometheus, and every command of the pages
	@$(if $(FRESH),.ci/install prometheus)
	$(GO) test -count 1 -timeout 20m -v -run '$(NEWCOMER)$(if $(FRESH),|commands_of)' ./cmd/redlock ./cmd/redlab $(FRESH)

.PHONY: release
release: ## Build the operator's command for Linux, macOS and Windows, twice, with checksums and SBOMs: bin/release
	.ci/release

.PHONY: soak
soak: needs ## Load clients and real masters for long, 25 minutes (ARGS=--short: 3): nothing grows
	$(GO) run ./internal/cmd/chaos soak $(ARGS)

fuzz: ## Run every fuzz test for FUZZTIME each
	@grep -rEo --include='*_test.go' --exclude-dir=peers '^func Fuzz\w+' . | sort | while IFS=: read -r file func; do \
		(set -x; $(GO) test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "$${file%/*}"); done

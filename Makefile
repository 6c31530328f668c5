SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN := .bin
FUZZTIME ?= 30s
ROUNDS ?= 3000
COUNT ?= 6
# More flags for make bench, as in BENCH='--archive FOLDER --postgres postgres://…'.
BENCH ?=

# Packages and tests that are marked in their test files.
LONG = $(shell scripts/marked.sh packages long)
RACED = $(shell scripts/marked.sh packages race)
NORACE = $$(scripts/marked.sh tests norace)
# Raced packages with marked tests or benchmarks, which run without the race detector.
UNWATCHED = $(foreach p,$(RACED),$(if $(shell grep -lE '^(//test:norace$$|func Benchmark)' $(p)/*_test.go),$(p)))

# Libraries that only compute are not watched by the race detector, with which SQLite takes ten times as long. Ours are,
# and so is rapid: the linker may keep its copy of a generic function of the standard library for all packages, and
# synchronisation that is not watched looks like a race. Conversions of pointers are checked, except in the standard library.
LIBRARIES := modernc.org/... github.com/klauspost/compress/... github.com/andybalholm/brotli/...
RACE := -race -gcflags=std=-d=checkptr=0 $(LIBRARIES:%=-gcflags=%=-race=false)
# Modules of their own.
MODULES := bench adapters/adk adapters/eino internal/sdktest tools

# Vetting is a part of lint. Linking without what debuggers need takes a third less.
QUICK := -vet=off -ldflags=-w
# TIMEOUT bounds a package, because a test may wait for ever. The longest takes four minutes, and six on a busy machine.
TIMEOUT := 1h
TESTFLAGS = $(QUICK) -count=1 -timeout $(TIMEOUT) -json
# Tests run in two lanes at the same time, with the race detector and without: while a lane waits, or has but one package
# left, the other one has the processors. Long packages are first. Benchmarks run once, with little; go test does not see
# these flags, for it would run one package at a time.
PACKAGES = go list $(LONG) ./... | grep $(1) <(go list $(RACED))
ONCE := -args -test.bench . -test.benchtime 1x
WATCHED = status=0; \
  scripts/inmemory.sh go test $(TESTFLAGS) $(RACE) -skip "$(NORACE)" $$($(call PACKAGES,-xFf)) || status=1; \
  for module in $(MODULES); do scripts/inmemory.sh go -C $$module test $(TESTFLAGS) ./... || status=1; done; \
  exit $$status
PLAIN = status=0; \
  scripts/inmemory.sh go test $(TESTFLAGS) $$($(call PACKAGES,-vxFf)) $(ONCE) || status=1; \
  scripts/inmemory.sh go test $(TESTFLAGS) -run "$(NORACE)" $$(go list $(UNWATCHED)) $(ONCE) || status=1; \
  exit $$status
CAMPAIGN = LINEAGE_CAMPAIGN=$(ROUNDS) scripts/inmemory.sh go test -count=1 -timeout 0 -json

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Compile every package, and the commands into .bin/
	go build -o $(BIN)/ ./...
	go -C bench build -o ../$(BIN)/ ./cmd/...

# A process with the race detector would wait for a second before it ends.
test: export GORACE := atexit_sleep_ms=0
# Tests leave much garbage and keep little, so that collecting it less often saves more time than it takes memory.
test: export GOGC := 300
test: export LINEAGE_BENCH_MESSAGES := 2000
.PHONY: test
test: modules installed tools ## Install what tests need, then run every test, with the race detector where goroutines share memory
	@scripts/lanes.sh $(BIN)/testsummary '$(WATCHED)' '$(PLAIN)'

.PHONY: modules
modules: ## Fetch the Go modules that are missing
	@scripts/modules.sh . $(MODULES)

.PHONY: installed
installed: ## Install what tests need, where it is missing
	@echo 'Installed first, where missing: the Debian packages postgresql, pgbouncer and chromium (as root); npm packages, and Node, into $(BIN)/' >&2
	@scripts/postgres.sh
	@scripts/chromium.sh
	@scripts/deepagents.sh
	@scripts/aisdk.sh
	@scripts/axe.sh
	@scripts/agents.sh
	@scripts/mcp.sh
	@scripts/js.sh
	@scripts/runtimes.sh

.PHONY: race
race: TIMEOUT := 2h
race: tools ## Run every test with the race detector (about an hour)
	GORACE=atexit_sleep_ms=0 scripts/inmemory.sh go test $(TESTFLAGS) $(RACE) ./... | $(BIN)/testsummary

.PHONY: lint
lint: tools ## Check the formatting, vet, staticcheck
	@unformatted=$$(find . -name $(BIN) -prune -o -name '*.go' -exec gofmt -l {} +); \
	if [[ -n $$unformatted ]]; then \
	  printf 'not formatted, run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; \
	fi
	go vet ./...
	$(BIN)/staticcheck ./...
	for module in $(MODULES); do go -C $$module vet ./...; (cd $$module && $(CURDIR)/$(BIN)/staticcheck ./...); done

.PHONY: cross
cross: tools ## Type-check, with the tests, for other operating systems and processors
	for target in darwin/arm64 windows/amd64 linux/386; do \
	  export GOOS=$${target%/*} GOARCH=$${target#*/}; \
	  $(BIN)/typecheck ./...; \
	  (cd bench && ../$(BIN)/typecheck ./...); \
	done

.PHONY: bench
bench: ## Measure the store beside others, with plots, into .bin/bench (about ten minutes)
	@scripts/postgres.sh
	scripts/deepagents.sh
	go -C bench build -o ../$(BIN)/ ./cmd/...
	$(BIN)/lineage-bench --deepagents $(BIN)/deepagents --postgres private --save $(BIN)/bench/results.jsonl --plots $(BIN)/bench $(BENCH)

.PHONY: operations
operations: ## Measure the context engine beside the TypeScript package, by processor time (a few minutes)
	scripts/deepagents.sh
	go -C bench build -o ../$(BIN)/ ./cmd/...
	$(BIN)/lineage-operations --deepagents $(BIN)/deepagents

.PHONY: microbench
microbench: ## Run the Go benchmarks COUNT times each (default 6)
	go test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

.PHONY: vuln
vuln: tools ## Look for known vulnerabilities, where the database can be reached
	scripts/vulncheck.sh

# What tests need is fetched while the code is checked.
.PHONY: ci
ci: ## Run every check, as .ci/run does
	@$(MAKE) --no-print-directory modules
	@$(MAKE) --no-print-directory -j2 installed checked
	@$(MAKE) --no-print-directory test

.PHONY: checked
checked:
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory cross
	@$(MAKE) --no-print-directory vuln

.PHONY: demo
demo: ## Bring in sample sessions and an archive, continue, fork, edit and search them, and open the page
	@scripts/step.sh 'building $(BIN)/lineage' go build -v -buildvcs=false -o $(BIN)/ ./cmd/lineage
	@scripts/step.sh 'building $(BIN)/lineage-bench' go -C bench build -v -buildvcs=false -o ../$(BIN)/ ./cmd/...
	@scripts/demo.sh

.PHONY: release
release: ## Build archives of the program for each platform into .bin/release
	scripts/release.sh $(BIN)/release

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 30s)
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

.PHONY: crash
crash: tools ## Run the crash tests with ROUNDS random crashes each (default 3000)
	$(CAMPAIGN) -run 'Crash|Kill|Salvage' ./internal/... | $(BIN)/testsummary

.PHONY: damage
damage: tools ## Damage ROUNDS bytes (default 3000) of stores in every state, and read them
	$(CAMPAIGN) -run "$$(scripts/marked.sh tests damage)" $$(scripts/marked.sh packages damage) | $(BIN)/testsummary

.PHONY: campaign-processes
campaign-processes: ## Kill and replace processes that share a store, ROUNDS times (default 3000), and count what they do
	$(CAMPAIGN:-json=-v) -p 1 -run "$$(scripts/marked.sh tests processes)" $$(scripts/marked.sh packages processes)

.PHONY: campaign
campaign: tools ## Run every test with ROUNDS random cases each (default 3000), for hours
	$(CAMPAIGN) ./... | $(BIN)/testsummary

.PHONY: golden
golden: ## Rewrite the golden files; read the difference before committing it
	LINEAGE_UPDATE_GOLDEN=1 go test -count=1 ./...

.PHONY: cover
cover: ## Measure which statements the tests reach
	mkdir -p $(BIN)
	go test -coverpkg=./... -coverprofile=$(BIN)/cover.out ./...
	go tool cover -func=$(BIN)/cover.out

.PHONY: fmt
fmt: ## Format the code
	gofmt -w .

.PHONY: tools
tools: ## Build the checkers that tools/go.mod pins
	@scripts/step.sh 'building the checkers' go -C tools build -v -buildvcs=false -o ../$(BIN)/ tool ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN)

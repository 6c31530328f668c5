SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN := .bin
FUZZTIME ?= 30s
CRASH_ROUNDS ?= 5000
DAMAGE_FLIPS ?= 3000
COUNT ?= 6
# More flags for make bench, as in BENCH='--archive FOLDER --postgres postgres://…'.
BENCH ?=

# The packages that depend on the operating system or the processor, vetted for several.
PORTABLE := $(wildcard lineage/lock internal/vfs structure)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Compile every package, and the commands into .bin/
	go build ./...
	go build -o $(BIN)/ ./cmd/...
	go -C bench build -o ../$(BIN)/ ./cmd/...

.PHONY: test
test: tools ## Install what tests need, then run every test with the race detector
	@scripts/postgres.sh
	@scripts/deepagents.sh
	@{ status=0; \
	  go test -race -count=1 -timeout 30m -json ./... || status=1; \
	  go -C bench test -race -count=1 -timeout 30m -json ./... || status=1; \
	  go -C tools test -race -count=1 -json ./... || status=1; \
	  exit $$status; } | $(BIN)/testsummary

.PHONY: lint
lint: tools ## Check the formatting, vet, staticcheck
	@unformatted=$$(gofmt -l .); \
	if [[ -n $$unformatted ]]; then \
	  printf 'not formatted, run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; \
	fi
	go vet ./...
	go -C bench vet ./...
	go -C tools vet ./...
	$(BIN)/staticcheck ./...
	cd bench && ../$(BIN)/staticcheck ./...
	cd tools && ../$(BIN)/staticcheck ./...

.PHONY: cross
cross: ## Compile for other operating systems and processors
	for target in darwin/arm64 windows/amd64 linux/386; do \
	  export GOOS=$${target%/*} GOARCH=$${target#*/}; \
	  go build ./...; \
	  go -C bench build ./...; \
	  $(if $(PORTABLE),go vet $(PORTABLE:%=./%/...);) \
	done

.PHONY: bench
bench: ## Measure the store beside others, with plots, into .bin/bench (about ten minutes)
	@scripts/postgres.sh
	scripts/deepagents.sh
	go -C bench build -o ../$(BIN)/ ./cmd/...
	$(BIN)/lineage-bench --deepagents $(BIN)/deepagents --postgres private --save $(BIN)/bench/results.jsonl --plots $(BIN)/bench $(BENCH)

.PHONY: microbench
microbench: ## Run the Go benchmarks COUNT times each (default 6)
	go test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

.PHONY: bench-smoke
bench-smoke: ## Prove that the benchmarks run; the figures mean nothing
	LINEAGE_BENCH_MESSAGES=2000 go test -short -run '^$$' -bench . -benchtime 1x ./...

.PHONY: vuln
vuln: tools ## Look for known vulnerabilities, where the database can be reached
	scripts/vulncheck.sh

.PHONY: ci
ci: ## Run every check, as .ci/run does
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory cross
	@$(MAKE) --no-print-directory bench-smoke
	@$(MAKE) --no-print-directory vuln
	@$(MAKE) --no-print-directory test

.PHONY: demo
demo: ## Import an archive, fork, edit, merge and search it, and leave a store to play with
	@scripts/step.sh 'building $(BIN)/lineage' go build -v -buildvcs=false -o $(BIN)/ ./cmd/lineage
	@scripts/step.sh 'building $(BIN)/lineage-bench' go -C bench build -v -buildvcs=false -o ../$(BIN)/ ./cmd/...
	@scripts/demo.sh

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 30s)
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

.PHONY: crash
crash: tools ## Run the crash tests for CRASH_ROUNDS (default 5000)
	LINEAGE_CRASH_ROUNDS=$(CRASH_ROUNDS) go test -count=1 -json -run 'Crash|Kill|Salvage' -timeout 0 ./internal/... | $(BIN)/testsummary

.PHONY: damage
damage: ## Flip DAMAGE_FLIPS single bytes (default 3000) in stores of every state, and read them
	LINEAGE_DAMAGE=$(DAMAGE_FLIPS) go test -count=1 -run '^TestDamage(OnTheCommandLine)?$$' -timeout 0 ./sqladapter/search ./cmd/lineage

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

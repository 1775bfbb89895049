# Commands that people and CI share. `make help` lists them.
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 1m

.PHONY: help build test race format vet staticcheck fuzz crash bench demo ci

help: ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-12s %s\n", $$1, $$2}'

build: ## Build bin/penstock
	go build -o bin/penstock ./cmd/penstock

test: ## Run every test
	go test ./...

race: ## Run every test under the race detector
	go test -race ./...

format: ## Fail if a file is not in the canonical format
	@out=$$(go run $(GOFUMPT) -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not formatted:"; echo "$$out"; exit 1; }

vet: ## Run go vet
	go vet ./...

staticcheck: ## Run staticcheck
	go run $(STATICCHECK) ./...

fuzz: ## Run every fuzz target for FUZZTIME
	@go list ./... | while read pkg; do \
	  go test -list '^Fuzz' $$pkg | grep '^Fuzz' | while read target; do \
	    echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done || exit 1; \
	done

crash: ## Kill the daemon a thousand times under load and compare the books
	go test ./test/crash -run TestKills -v -kills 1000 -timeout 1h

bench: ## Measure the built binary beside its peers
	go run ./test/bench

demo: ## Play the demo
	go run ./cmd/penstock demo

ci: format vet staticcheck test race ## What CI runs

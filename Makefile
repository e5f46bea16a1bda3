# Highwater. `make help` lists the targets. Everything fetched or built for them goes to .cache/ and bin/.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo build native native-cpu native-check test check-build check-test check-native fmt vet unit race fuzz python bench lint notebook validate clean missing
# With -j too: what uses all CPUs by itself gains nothing beside others, and tests that share two CPUs with compilers lose.
.NOTPARALLEL:

GO     := scripts/go.sh
PYTHON ?= python3
export PYTHON
VENV   := .cache/venv
FETCHED := .cache/fetched
# Fuzz targets run for a bounded count, so that the same tests run everywhere: FUZZ=100000x make fuzz digs deeper.
FUZZ   ?= 2000x
# Keys that make's targets set up; `bin/highwater` by itself keeps them in the user's cache folder.
export HIGHWATER_CACHE_DIR ?= $(CURDIR)/.cache/keys
# Packages whose tests also run under the race detector; its eightfold cost is not worth it for arithmetic. Of the prover
# those tests that make no proofs: queues and the pipeline on a fake engine.
RACE   := ./tracer/... ./prover/hostmem
# A package's tests take a minute or two on an idle machine; a busy one may be ten times slower.
PATIENT := -timeout 30m

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@for f in scripts/validate/*.sh; do [ ! -e "$$f" ] || { n=$${f##*/}; \
		printf '  make validate-%-9s %s\n' "$${n%.sh}" "$$(sed -n '2s/^# //p' "$$f")"; }; done

demo: build ## Record the incident, explain it, predict the fix, run the fix: about two minutes on 2 cores
	bin/highwater demo

build: $(FETCHED) ## Build bin/highwater
	@$(GO) build -buildvcs=$$(git status >/dev/null 2>&1 && echo true || echo false) -o bin/highwater ./cmd/highwater

native: check-native ## Build the CUDA library bin/libhighwater_native.so; nvcc of a toolkit, else as wheels
	scripts/native/build.sh cuda

native-cpu: check-native ## Build the library's twin on the CPU, bin/libhighwater_native_cpu.so: no GPU, no CUDA
	@scripts/native/build.sh cpu

native-check: check-native ## The twin's tests, and the device code through nvcc
	@scripts/native/check.sh

test: check-test fmt vet native-check unit race fuzz python ## Everything that must pass before a change lands

unit: check-test $(FETCHED) native-cpu ## Go tests
	HIGHWATER_TEST_NATIVE=$${HIGHWATER_TEST_NATIVE:-$(CURDIR)/bin/libhighwater_native_cpu.so} $(GO) test $(PATIENT) ./...

race: check-test $(FETCHED) ## Go tests of what runs concurrently, under the race detector
	CGO_ENABLED=1 $(GO) test -race $(PATIENT) $(RACE)
	CGO_ENABLED=1 $(GO) test -race $(PATIENT) -run '^Test(Semaphore|Channel|Rendezvous|Budget(Bounds|HeadOfLine)|Conservation|PermitRelease|Pipeline|TraceOfPipeline|Cancel)' ./prover

fuzz: check-test $(FETCHED) ## Each fuzz target for a bounded count (FUZZ=2000x)
	scripts/fuzz.sh $(FUZZ)

fmt: $(FETCHED)
	@bad=$$(find . \( -path './.*' -o -path ./bin \) -prune -o -name '*.go' -print0 | xargs -0 "$$($(GO) env GOROOT)/bin/gofmt" -l); \
		[ -z "$$bad" ] || { echo "not gofmt-ed:"; echo "$$bad"; echo "run: gofmt -w ."; exit 1; }

vet: $(FETCHED)
	$(GO) vet ./...

python: build $(VENV)/ready ## DuckDB and the notebooks, against the command
	$(VENV)/bin/python -m pytest -q notebooks

bench: $(FETCHED) ## Go benchmarks, each a few times, for benchstat
	$(GO) test -run '^$$' -bench . -count 6 -benchtime 0.3s ./...

lint: check-build ## golangci-lint with staticcheck and gofumpt (not part of test: the tool is a long build)
	$(GO) tool -modfile=tools.mod golangci-lint run ./...

notebook: build $(VENV)/ready ## Open the notebooks in JupyterLab: make notebook HIGHWATER_TRACE=run.hw
	scripts/retry.sh JupyterLab $(VENV)/bin/pip install -q -r notebooks/requirements-lab.txt
	$(VENV)/bin/jupyter lab notebooks

validate: ## The long proofs of docs/bars.md, one after another
	@set -e; for f in scripts/validate/*.sh; do n=$${f##*/}; $(MAKE) --no-print-directory validate-$${n%.sh}; done

validate-%: build $(VENV)/ready
	@[ -x scripts/validate/$*.sh ] || { echo "no such proof: $*; there are: $$(cd scripts/validate && ls | sed 's/\.sh$$//' | xargs)"; exit 2; }
	scripts/validate/$*.sh

# On its own, with a retry: a network that fails for a moment is to fail no test. The first line fetches what is needed
# and not there, so that a full module cache does without a network.
$(FETCHED): go.mod go.sum | check-build
	@[ -d "$${GOMODCACHE:-.cache/go/mod}/cache" ] || echo "Fetching Go modules (once); a few minutes on a slow line."
	@$(GO) list -deps -test ./... >/dev/null || scripts/retry.sh "Go and its modules" $(GO) mod download
	@mkdir -p $(@D) && touch $@

$(VENV)/ready: notebooks/requirements.txt notebooks/constraints.txt | check-test
	@echo "Fetching Python packages into $(VENV) (once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "The notebooks need Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version): make PYTHON=python3.11 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@scripts/retry.sh "Python packages" $(VENV)/bin/pip install -q --disable-pip-version-check --cache-dir .cache/pip -r notebooks/requirements.txt
	@touch $@

check-build check-test check-native: check-%:
	@need=$$(scripts/missing.sh $*); [ -z "$$need" ] || { echo "Missing: $$need. Install it with:"; echo; echo "  apt-get install -y $$need"; echo; exit 1; }

missing:
	@scripts/missing.sh test

clean: ## Remove bin/, .cache/ and the demo's traces
	chmod -R u+w .cache 2>/dev/null || true
	rm -rf bin .cache demo-out

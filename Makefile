# "make" alone lists what there is. A recipe of more than a line is a script in .ci/, which can
# be run by itself from anywhere.

.DEFAULT_GOAL := help
.PHONY: help demo test integration soak compatible check model mutants amnesia holds pairs elections ticks standby bench bench-short bench-full cover fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## half a minute of trouble: nodes, replicas, ticks; needs Go alone (ARGS="-for 1m")
	@go run ./docs/demo $(ARGS)

test: ## set up what the tests need, then run them all with the race detector
	@.ci/test

integration: ## redlock on redis-server in containers under faults; needs a container engine
	@.ci/integration $(ARGS)

soak: ## a schedule on containers under a nemesis, with a table and a timeline (FOR=10m SEED=1 OUT=docs/soak.svg)
	@FOR=$(FOR) SEED=$(SEED) OUT=$(OUT) .ci/soak

compatible: ## the conformance suite on servers like Redis that Debian's backports offer
	@.ci/compatible

check: ## formatting, vet, staticcheck, import directions, tidy modules
	@.ci/check

model: ## check the protocol's models exhaustively
	go run ./internal/model/cmd/model

mutants: ## take rules out of the product one by one; a test has to notice each
	go run ./internal/mutants/cmd/mutants

amnesia: ## restart real nodes empty while locks are held, again and again
	go run ./internal/amnesia

holds: ## hold and renew 100,000 locks in one process
	go run ./internal/holds

pairs: ## lock and unlock, beside redsync, in one run
	go run ./internal/pairs

elections: ## many contenders for one lock at once: winners and times, beside redsync
	go run ./internal/elections

ticks: ## what a tick costs: time from its instant to its run, commands to the nodes
	go run ./schedule/internal/ticks

standby: ## refuse 100,000 ticks on a standby: memory and time per tick; what gocron's elector hook costs
	QUORUMLOCK_STANDBY_TICKS=100000 go test ./schedule -count=1 -timeout 30m -v -run 'TestAStandbyDoesNotGrow$$'
	go test ./schedule -run '^$$' -bench RefusedTicks -benchtime 1x

bench: ## beside redsync, rueidislock and redislock, under 10 minutes; replaces docs/benchmarks.md, also one of bench-full
	@.ci/bench core -out docs/benchmarks.md -svg docs/benchmarks.svg

bench-short: ## the first ratios of it and what bounds them, under 90 s; writes nothing
	@.ci/bench short

bench-full: ## all there is, about 25 minutes; replaces docs/benchmarks.md
	@.ci/bench full -out docs/benchmarks.md -svg docs/benchmarks.svg

cover: ## coverage of quorum and redlock; fails under 90 %
	@.ci/cover

fuzz: ## fuzz each target for a short time (FUZZTIME=10s)
	@.ci/fuzz

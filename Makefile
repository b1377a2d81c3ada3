# `make` without arguments lists the commands. The scripts in scripts/ do the work; targets state what they depend on.

export PYTHON ?= python3
export UV_VERSION := 0.13.8
AUDITWHEEL_VERSION := 6.8.2
CYCLONEDX_VERSION := 7.5.0
PIP_AUDIT_VERSION := 2.10.1
KAFKA_VERSIONS := 4.3.1 3.9.1 4.4.0
LETTER_JARS := .writers/kafka/.complete .writers/spring/.complete
KAFKAS := 3.7.2 3.8.1 3.9.1 4.0.0 4.1.1 4.2.0 4.3.1 4.4.0
SPARK_MINOR := 4.0
SPARKS := 4.1.4 4.2.1 4.3.0
SPARKS_JARS := spark/4.1 spark/4.2 tables/4.1 tables/4.2 store/4.1 store/4.2 store/4.3 streams
ENGINE ?= docker
export SOURCES := sluicegate protocol validation config dead_letters proxy pipeline bench docs tests setup.py
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
COMPILED := $(shell find protocol proxy validation -name '*.pxd' -o -name '*.pyx')
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
REVISION = $(shell git rev-parse HEAD 2>/dev/null)
export PATH := $(CURDIR)/.tools:$(PATH)

.PHONY: bench-scan bench-rules bench-instructions alone interpreted kafka registry jars brokers archives $(shell sed -n "s/^\([a-z-]*\):.*\#\# .*/\1/p" Makefile)

help: ## lists these commands
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 26

# Environments (scripts/environment lists the packages of each).
setup: $(VENV)/.installed ## makes .venv and compiles the hot path
spark: $(VENV)/.spark ## adds Spark: .venv/bin/sluicegate-spark
$(VENV)/.installed: pyproject.toml uv.lock setup.py $(COMPILED) $(wildcard $(COMPILED:.pxd=.py))
$(VENV)/.spark $(VENV)/.docs: $(VENV)/.installed
$(VENV)/.%: pyproject.toml uv.lock
	@scripts/environment $*
	@touch $@
run: $(if $(UPSTREAM)$(wildcard $(VENV)/.installed),setup,$(VENV)/.demo) ## runs the demo [SECONDS=10], or a proxy: UPSTREAM=host:port [LISTEN=host:port] [ADMIN=host:port]
	@exec env $(if $(UPSTREAM),$(if $(ADMIN),SLUICEGATE__ADMIN__LISTEN=$(ADMIN)) $(BIN)/sluicegate run --config sluicegate.yaml --upstream $(UPSTREAM) $(if $(LISTEN),--listen $(LISTEN)),$(BIN)/sluicegate demo $(if $(SECONDS),--seconds $(SECONDS)))
docs: $(VENV)/.docs ## builds docs/ as a site in build/site and checks every link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
pictures: $(VENV)/.spark kafka ## writes docs/pictures from a running demo [SECONDS=900] and from the reports of the jobs; needs Chromium
	$(BIN)/python -m tests.webui.pictures $(or $(SECONDS),900)
	$(PYTEST) -m long tests/pipeline/test_reports.py -k accessible
	cp build/reports/report-*.png docs/pictures/

# Checks and tests. PYTEST_ARGS='-k name' selects tests.
check: $(VENV)/.check ## checks lint, format, types and layers in a minute; needs no Spark, compiler or broker
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
format: $(VENV)/.check ## formats the code and applies lint's automatic fixes
	$(BIN)/ruff check --fix $(SOURCES) && $(BIN)/ruff format $(SOURCES)
unit: setup ## runs the tests that need no broker
	$(PYTEST) -n $(or $(TEST_PROCESSES),2) --dist loadfile tests/structure tests/dead_letters tests/proxy tests/protocol tests/validation tests/config tests/two_paths tests/docs/test_policies.py $(PYTEST_ARGS)
test: $(VENV)/.libraries ## runs the tests that every pull request must pass, with real brokers from Maven, in about 15 minutes
	$(MAKE) -j2 check brokers
	$(MAKE) setup spark $(VENV)/.docs
	scripts/test short $(PYTEST_ARGS)
test-long: setup spark $(VENV)/.docs archives ## runs all other tests in their short form, in about an hour
	scripts/test long $(PYTEST_ARGS)
alone interpreted: setup kafka ## runs the tests of time and memory (alone), or those without compiled modules (interpreted)
	scripts/test $@ $(PYTEST_ARGS)
test-tools: ## installs programs without which some tests are skipped (Debian, Go, npm)
	@scripts/test-tools
pythons: ## runs the tests that need no broker on each installed Python [PYTHONS="3.12 3.13"]; writes docs/compatibility.md
	scripts/pythons.py $(if $(PYTHONS),--short $(PYTHONS),--write)
lanes: setup ## compares the fast path with the slow path on a million mutated requests
conformance: setup kafka ## compares every case in every version with real brokers
clients: setup kafka ## tests every client that can be installed; writes docs/compatibility.md
kafkas: setup $(KAFKAS:%=.kafka/%/.complete) ## tests five clients and topic policies with each Kafka release since 3.7; writes docs/compatibility.md
bounds: setup kafka ## measures hostile inputs at full size [PYTEST_ARGS="-k name"]; writes bench/results
load: setup ## measures crowds of clients; writes bench/results/reliability.md
faults: setup kafka ## injects faults under load [RUNS=200] [SEED=1]; with several runs writes bench/results/reliability.md
suites: setup ## runs the official suites of JSON Schema, CEL, Avro and protovalidate [AVRO=folder] [PROTOVALIDATE=folder]
verifiable: setup kafka ## runs Kafka's verifiable producer and consumer under faults [MINUTES=10]
soak: setup kafka ## runs all kinds of traffic and faults together [MINUTES=60] [SEED=1]; writes bench/results/reliability.md
peers-suites: setup kafka ## runs the tests of FRANZ_GO=folder and LIBRDKAFKA=folder at a broker and through the proxy [TESTS=pattern] [KAFKA=release]
fuzz: setup ## runs mutated frames and batches under sanitizers, with MINUTES=n guided by coverage
sparks: $(VENV)/.spark kafka $(SPARKS:%=.sparks/%/.complete) $(SPARKS_JARS:%=.%/.complete) ## runs the pipeline's tests with other Spark releases
lanes conformance clients kafkas bounds load faults verifiable soak peers-suites suites fuzz sparks:
	@scripts/suite $@ $(PYTEST_ARGS)
.sparks/%/.complete: uv.lock | $(VENV)/.spark
	scripts/another-spark $*

# Measurements; each writes bench/results. Each part has its own line, because make can only end its direct children.
bench: setup kafka .bench/kroxylicious/.complete ## compares the proxy with a broker, a relay and Kroxylicious; skips parts that have a result of this commit
	$(BIN)/python -m bench.resumed
	$(BIN)/python -m bench.resumed bench
	$(BIN)/python -m bench.resumed bench.live_instructions
	$(BIN)/python -m bench.resumed bench.live_rules
	$(BIN)/python -m bench.resumed bench.encrypted
bench-scan bench-rules bench-instructions: setup kafka # compare with Kafka's validator, measure rules on one value, or compare with bench/baseline.json
	$(BIN)/python -m bench.$(@:bench-%=%)
bench-pipeline: $(VENV)/.spark kafka .spark/$(SPARK_MINOR)/.complete ## compares the pipeline with Spark's own source; writes bench/results/pipeline.md
	$(BIN)/python -m bench.spark_sources
	$(BIN)/python -m bench.pipeline_speed

# Libraries from Maven, one target at a time, because two Mavens cannot share a cache. `make test` starts `brokers`.
kafka: $(KAFKA_VERSIONS:%=.kafka/%/.complete) .kafka/jmx/.complete
registry: .registry/.complete
SHORT_JARS := $(KAFKA_VERSIONS:%=.kafka/%/.complete) $(patsubst %,.%/.complete,registry schemas serializers/glue serializers/apicurio spark/$(SPARK_MINOR))
jars: $(SHORT_JARS) .kafka/jmx/.complete .tables/$(SPARK_MINOR)/.complete .store/$(SPARK_MINOR)/.complete .streams/.complete $(LETTER_JARS)
brokers: ; $(MAKE) -j1 $(SHORT_JARS) .kafka/$(firstword $(KAFKA_VERSIONS)).jsa
archives: # writes Java's class archives, with which brokers and Spark start in half the time; Spark's archive takes as long as five starts
	$(MAKE) -j1 jars $(KAFKA_VERSIONS:%=.kafka/%.jsa) .spark/$(SPARK_MINOR)/classes.jsa
.kafka/%.jsa: .kafka/%/.complete tests/broker/class_archive.py | $(VENV)/.libraries
	$(BIN)/python -m tests.broker.class_archive $*
.spark/$(SPARK_MINOR)/classes.jsa: .spark/$(SPARK_MINOR)/.complete uv.lock tests/pipeline/class_archive.py tests/pipeline/spark_home.py | $(VENV)/.libraries
	$(BIN)/python -m tests.pipeline.spark_home && $(BIN)/python -m tests.pipeline.class_archive
.%/.complete: $(shell find . -name pom.xml -not -path "./.*")
	scripts/maven-libraries $*

# Artefacts of a release.
wheel: setup ## builds an sdist and a compiled wheel in dist/
	REVISION=$(REVISION) AUDITWHEEL_VERSION=$(AUDITWHEEL_VERSION) scripts/wheel
wheel-check: wheel kafka ## tests the wheel in an empty environment without a compiler
	SLUICEGATE_WHEEL="$$(ls -t dist/*.whl | head -n 1)" $(PYTEST) tests/packaging -k alone_gives_a_proxy $(PYTEST_ARGS)
reproducible: ## builds the sdist and the wheel twice, in two folders, and compares them
	scripts/release/reproducible
executors: ## builds the code as one archive for spark-submit --py-files
	$(PYTHON) scripts/executors.py
sbom: setup ## writes the list of installed packages (CycloneDX) to dist/
	CYCLONEDX_VERSION=$(CYCLONEDX_VERSION) scripts/sbom
audit: setup ## checks locked packages for known vulnerabilities [ADVISORIES=folder] [AUDIT=--vulnerability-service=osv]
	PIP_AUDIT_VERSION=$(PIP_AUDIT_VERSION) scripts/audit $(or $(ADVISORIES),$(AUDIT))
image: ## builds the container images, plain and with the extras rules and topic; needs Docker or ENGINE=podman
	$(ENGINE) build --build-arg REVISION=$(REVISION) --tag sluicegate:$(VERSION) .
	$(ENGINE) build --build-arg REVISION=$(REVISION) --target rules --tag sluicegate:$(VERSION)-rules .
clean: ## removes everything that these commands created
	rm -rf $(VENV) .kafka .registry .schemas .serializers .spark .sparks .pythons .tables .store .streams .writers .clients .collector .suites .tools .bench build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find protocol proxy validation \( -name '*.so' -o -name '*.c' \) -delete

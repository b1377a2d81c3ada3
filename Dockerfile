# Two images without pip and a compiler. `docker build .` builds the plain image. `--target rules` adds the extras `rules` and
# `topic`, for rules about schemas and expressions, quarantine and violations.topic. EXTRAS=otel adds another extra to both.
# The base is Debian's slim Python, because rules need glibc (there are no wheels for musl). `docker build --pull` gets its
# security updates.
FROM python:3.13-slim AS build
# The release of the base image determines the versions.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY sluicegate ./sluicegate
COPY protocol ./protocol
COPY validation ./validation
COPY config ./config
COPY dead_letters ./dead_letters
COPY proxy ./proxy
COPY pipeline ./pipeline
ARG EXTRAS=
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# Installs the copied folder, not a release.
RUN SLUICEGATE_COMPILED=required pip wheel --quiet --no-cache-dir --no-deps --wheel-dir /wheels .
# Removes the Spark command and its code, because the image has no Spark. Strips the symbols of compiled modules, which are a third
# of the image and unused. `*.libs` keep theirs, because auditwheel has changed the layout of these files.
# hadolint ignore=DL3013
RUN python -m venv --without-pip /opt/sluicegate \
    && pip --python /opt/sluicegate/bin/python install --no-cache-dir "$(echo /wheels/*.whl)${EXTRAS:+[${EXTRAS}]}" \
    && rm -r /opt/sluicegate/bin/sluicegate-spark /opt/sluicegate/lib/python3*/site-packages/sluicegate/pipeline \
    && find /opt/sluicegate -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} + \
    && /opt/sluicegate/bin/sluicegate version \
    && /opt/sluicegate/bin/sluicegate version | grep ', record scan compiled$'
# Writes an inventory (CycloneDX) for vulnerability scanners.
RUN python -m venv /opt/inventory \
    && /opt/inventory/bin/pip install --no-cache-dir --quiet 'cyclonedx-bom==7.5.0' \
    && /opt/inventory/bin/cyclonedx-py environment --output-reproducible --of JSON \
        -o /opt/sluicegate/sbom.cdx.json /opt/sluicegate/bin/python \
    && /opt/sluicegate/bin/python -m sluicegate.proxy.webui.vendored /opt/sluicegate/sbom.cdx.json

FROM build AS build-rules
# hadolint ignore=DL3013
RUN pip --python /opt/sluicegate/bin/python install --no-cache-dir "$(echo /wheels/*.whl)[rules,topic]" \
    && rm -rf /opt/sluicegate/bin/sluicegate-spark /opt/sluicegate/lib/python3*/site-packages/sluicegate/pipeline \
    && find /opt/sluicegate -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} + \
    && /opt/inventory/bin/cyclonedx-py environment --output-reproducible --of JSON \
        -o /opt/sluicegate/sbom.cdx.json /opt/sluicegate/bin/python \
    && /opt/sluicegate/bin/python -m sluicegate.proxy.webui.vendored /opt/sluicegate/sbom.cdx.json

FROM python:3.13-slim AS runtime
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sluicegate" \
      org.opencontainers.image.description="A Kafka-protocol proxy that validates what producers write" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN pip uninstall --yes --quiet pip \
    && rm -rf /usr/local/lib/python3.13/ensurepip \
    && groupadd --system --gid 10001 sluicegate \
    && useradd --system --uid 10001 --gid 10001 --no-create-home sluicegate \
    && install -d -o 10001 -g 10001 /var/lib/sluicegate
# A numeric user, so that Kubernetes can verify that it is not root (runAsNonRoot).
USER 10001:10001
# The folder of a relative violations.file. The proxy writes to no other place, so the root can be read-only.
WORKDIR /var/lib/sluicegate
VOLUME /var/lib/sluicegate
# Python writes no bytecode files. `sluicegate version` shows the commit. The C library returns the memory of large requests at once
# (docs/how-to/sizing.md).
ENV PATH=/opt/sluicegate/bin:$PATH PYTHONDONTWRITEBYTECODE=1 SLUICEGATE_REVISION=${REVISION} \
    MALLOC_MMAP_THRESHOLD_=2097152 MALLOC_TRIM_THRESHOLD_=4194304
EXPOSE 19092 9650
STOPSIGNAL SIGTERM
# Requests /livez at admin.listen (in the file or SLUICEGATE__ADMIN__LISTEN). Without an admin endpoint the container is healthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["sluicegate", "healthcheck", "--config", "/etc/sluicegate.yaml"]
# Mount a configuration at /etc/sluicegate.yaml and publish its broker ports. `docker run IMAGE doctor --config …` runs another
# command.
ENTRYPOINT ["sluicegate"]
CMD ["run", "--config", "/etc/sluicegate.yaml"]

FROM runtime AS rules
COPY --from=build-rules /opt/sluicegate /opt/sluicegate
RUN ["sluicegate", "version"]

FROM runtime AS plain
COPY --from=build /opt/sluicegate /opt/sluicegate
RUN ["sluicegate", "version"]

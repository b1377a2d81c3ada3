# Two images without pip and compiler. `docker build .` makes the plain one; `--target rules` adds the extras `rules` and `topic`:
# rules about schemas and expressions, quarantine and violations.topic. EXTRAS=otel adds another extra to both.
# The base is Debian's slim Python: rules need glibc (wheels for musl are missing), and its security updates come with a pull.
FROM python:3.13-slim AS build
# The base image's release decides the versions.
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
COPY proxy ./proxy
COPY pipeline ./pipeline
ARG EXTRAS=
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# The folder that was copied is installed, not a release.
RUN SLUICEGATE_COMPILED=required pip wheel --quiet --no-cache-dir --no-deps --wheel-dir /wheels .
# The Spark command and its code need Spark, which is not here. Symbols of compiled modules are a third of the image, and nothing
# reads them; `*.libs` are left alone, because their layout was changed after linking.
# hadolint ignore=DL3013
RUN python -m venv --without-pip /opt/sluicegate \
    && pip --python /opt/sluicegate/bin/python install --no-cache-dir "$(echo /wheels/*.whl)${EXTRAS:+[${EXTRAS}]}" \
    && rm -r /opt/sluicegate/bin/sluicegate-spark /opt/sluicegate/lib/python3*/site-packages/sluicegate/pipeline \
    && find /opt/sluicegate -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} + \
    && /opt/sluicegate/bin/sluicegate version \
    && /opt/sluicegate/bin/sluicegate version | grep ', record scan compiled$'
# An inventory, as CycloneDX, for scanners of vulnerable libraries.
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
        -o /opt/sluicegate/sbom.cdx.json /opt/sluicegate/bin/python

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
# By number, so that Kubernetes can tell that it is not root (runAsNonRoot).
USER 10001:10001
# Where a relative violations.file goes: the only place that is written to, so the root can be read-only.
WORKDIR /var/lib/sluicegate
VOLUME /var/lib/sluicegate
# Nothing is written beside the modules; what `sluicegate version` says of the commit. The C library returns the memory of large
# requests at once (docs/how-to/sizing.md).
ENV PATH=/opt/sluicegate/bin:$PATH PYTHONDONTWRITEBYTECODE=1 SLUICEGATE_REVISION=${REVISION} \
    MALLOC_MMAP_THRESHOLD_=2097152 MALLOC_TRIM_THRESHOLD_=4194304
EXPOSE 19092 9650
STOPSIGNAL SIGTERM
# Asks /livez where admin.listen says, in the file or in SLUICEGATE__ADMIN__LISTEN; well without an admin endpoint.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["sluicegate", "healthcheck", "--config", "/etc/sluicegate.yaml"]
# Mount a configuration at /etc/sluicegate.yaml and publish the broker ports it names. `docker run IMAGE doctor --config …`
# runs another command.
ENTRYPOINT ["sluicegate"]
CMD ["run", "--config", "/etc/sluicegate.yaml"]

FROM runtime AS rules
COPY --from=build-rules /opt/sluicegate /opt/sluicegate
RUN ["sluicegate", "version"]

FROM runtime AS plain
COPY --from=build /opt/sluicegate /opt/sluicegate
RUN ["sluicegate", "version"]

# Built in two steps: compiler and pip stay behind.
FROM python:3.13-slim AS build
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
RUN python -m venv --without-pip /opt/sluicegate \
    && SLUICEGATE_COMPILED=required pip --python /opt/sluicegate/bin/python install --no-cache-dir ".[topic]" \
    && /opt/sluicegate/bin/sluicegate version \
    && /opt/sluicegate/bin/sluicegate version | grep -q ', record scan compiled$'

FROM python:3.13-slim
RUN pip uninstall --yes --quiet pip \
    && rm -rf /usr/local/lib/python3.13/ensurepip \
    && groupadd --system --gid 10001 sluicegate \
    && useradd --system --uid 10001 --gid 10001 --no-create-home sluicegate \
    && install -d -o 10001 -g 10001 /var/lib/sluicegate
COPY --from=build /opt/sluicegate /opt/sluicegate
# By number, so that Kubernetes can tell that it is not root (runAsNonRoot).
USER 10001:10001
# Where a relative violations.file goes: with a read-only root it needs a volume.
WORKDIR /var/lib/sluicegate
VOLUME /var/lib/sluicegate
ENV PATH=/opt/sluicegate/bin:$PATH
RUN sluicegate version | grep -q ', record scan compiled$'
EXPOSE 19092 9650
STOPSIGNAL SIGTERM
# Asks /livez where admin.listen says, in the file or in SLUICEGATE__ADMIN__LISTEN; well without an admin endpoint.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["sluicegate", "healthcheck", "--config", "/etc/sluicegate.yaml"]
# Mount a configuration at /etc/sluicegate.yaml and publish the broker ports it names.
CMD ["sluicegate", "run", "--config", "/etc/sluicegate.yaml"]

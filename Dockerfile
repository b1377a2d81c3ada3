# Built in two steps: the compiler stays behind.
FROM python:3.13-slim AS build
RUN apt-get update \
    && apt-get install --no-install-recommends --yes gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY protocol ./protocol
COPY validation ./validation
COPY config ./config
COPY proxy ./proxy
COPY pipeline ./pipeline
RUN python -m venv /opt/sluicegate && /opt/sluicegate/bin/pip install --no-cache-dir .

FROM python:3.13-slim
RUN useradd --system --uid 10001 sluicegate && install -d -o sluicegate /var/lib/sluicegate
COPY --from=build /opt/sluicegate /opt/sluicegate
USER sluicegate
WORKDIR /var/lib/sluicegate
ENV PATH=/opt/sluicegate/bin:$PATH
EXPOSE 19092 9650
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:9650/livez', timeout=2)"]
# Mount a configuration at /etc/sluicegate.yaml and publish the broker ports it names.
CMD ["sluicegate", "run", "--config", "/etc/sluicegate.yaml"]

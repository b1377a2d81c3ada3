"""Values of `otel` are valid, or rejected with a message that shows no secret."""

import pytest

from sluicegate.config.values.http import headers_in
from tests.config.reading import SMALLEST, load_text, problems_of_text

SECRET = "S3CRET"


def configuration_with_otel(keys: str) -> str:
    return SMALLEST + f"otel: {{endpoint: 'http://c:4318', {keys}}}\n"


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("authorization=Bearer%20a%2Cb==", {"authorization": "Bearer a,b=="}),
        (" X-Tenant = a , api-key=b,", {"x-tenant": "a", "api-key": "b"}),
    ],
)
def test_otel_headers_use_the_syntax_of_the_opentelemetry_variable(text: str, headers: dict[str, str]) -> None:
    assert headers_in(text) == headers


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"={SECRET}",
        f"a b={SECRET}",
        f"a={SECRET}%0D%0Ab:c",
        f"a={SECRET},A={SECRET}",
        f"Host={SECRET}",
        f"a={SECRET}%C3%A4",
        ",".join(f"a{i}={SECRET}" for i in range(21)),
    ],
)
def test_otel_header_errors_do_not_reveal_header_values(text: str) -> None:
    (problem,) = problems_of_text(configuration_with_otel(f"headers: '{text}'"))

    assert problem.startswith("c.yaml:3: otel: header")
    assert SECRET not in problem


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("headers: 'a=b', headers_file: f", "c.yaml:3: otel: headers and headers_file cannot be combined"),
        ("tls: {ca_file: f}", "c.yaml:3: otel: tls is only valid with an https endpoint"),
        ("traces_per_second: -1", "c.yaml:3: otel.traces_per_second: expected a whole number of 0 to"),
    ],
)
def test_otel_section_errors_include_the_key(keys: str, words: str) -> None:
    (problem,) = problems_of_text(configuration_with_otel(keys))

    assert problem.startswith(words)


def test_rejects_an_otel_endpoint_with_a_login() -> None:
    (no_url,) = problems_of_text(SMALLEST + "otel: {endpoint: 'c:4318'}")
    (login,) = problems_of_text(SMALLEST + f"otel: {{endpoint: 'http://u:{SECRET}@c'}}")

    assert "otel.endpoint: expected a URL such as http://collector.internal:4318" in no_url
    assert "otel.endpoint: expected a URL without a user or password" in login
    assert SECRET not in login


def test_workers_divide_the_trace_rate_and_export_no_metrics() -> None:
    config = load_text(configuration_with_otel("traces_per_second: 10") + "workers: 4").config

    otel = config.of_one_worker(config.listen.bootstrap).otel

    assert otel is not None
    assert (otel.metrics, otel.traces_per_second) == (False, 3)

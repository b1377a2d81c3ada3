"""A broker in the configuration for which no address for clients is possible is an error."""

import pytest

from sluicegate.config.loading import ConfigError
from tests.config.reading import load_text

_TLS = "tls: {certificate_file: c, key_file: k}"
_NAMED = f"bootstrap: '127.0.0.1:9292', broker_host: 'b{{node_id}}.test', {_TLS}"


@pytest.mark.parametrize(
    ("brokers", "listen", "problem"),
    [
        (
            "60000: 'h:1'",
            "bootstrap: '127.0.0.1:9292'",
            "upstream.brokers: broker 60000 would need port 69293, which does not exist; "
            "add its port to listen.broker_port_map, or use listen.broker_host",
        ),
        (
            "2147483647: 'h:1'",
            "bootstrap: '127.0.0.1:9292', broker_port_base: 1",
            "upstream.brokers: broker 2147483647 would need port 2147483648, which does not exist; "
            "add its port to listen.broker_port_map, or use listen.broker_host",
        ),
        (
            "2: 'h:1'",
            "bootstrap: '127.0.0.1:9292', broker_port_base: 9290",
            "upstream.brokers: broker 2 would need port 9292, which listen.bootstrap already uses; "
            "change listen.broker_port_base or listen.broker_port_map",
        ),
        (
            "2: 'h:1'",
            "bootstrap: '127.0.0.1:9292', broker_port_base: 9648",
            "upstream.brokers: broker 2 would need port 9650, which admin.listen already uses; "
            "change listen.broker_port_base or listen.broker_port_map",
        ),
        (
            "2: 'h:1'",
            "bootstrap: '127.0.0.1:9292', broker_port_base: 9300, broker_port_map: {2000000000: 9302}",
            "upstream.brokers: broker 2 would need port 9302, which broker 2000000000 already uses; "
            "add its port to listen.broker_port_map, or use listen.broker_host",
        ),
        (
            "",
            "bootstrap: '127.0.0.1:9292', broker_port_map: {2000000000: 9650}",
            "listen.broker_port_map: broker 2000000000 would need port 9650, which admin.listen already uses; "
            "change listen.broker_port_base or listen.broker_port_map",
        ),
    ],
)
def test_rejects_broker_without_an_address(brokers: str, listen: str, problem: str) -> None:
    text = f"upstream: {{bootstrap: 'h:1', brokers: {{{brokers}}}}}\nlisten: {{{listen}}}\n"

    with pytest.raises(ConfigError) as raised:
        load_text(text + "admin: {listen: '127.0.0.1:9650'}\n")

    assert [str(one).split(": ", 1)[1] for one in raised.value.problems] == [problem]


@pytest.mark.parametrize(
    ("node_id", "listen"),
    [
        (2**31 - 1, _NAMED),
        (56_242, "bootstrap: '127.0.0.1:9292'"),
        (2**31 - 1, "bootstrap: '127.0.0.1:9292', broker_port_map: {2147483647: 9294}"),
    ],
)
def test_the_largest_node_id_with_an_address_is_accepted(node_id: int, listen: str) -> None:
    text = f"upstream: {{bootstrap: 'h:1', brokers: {{{node_id}: 'h:1'}}}}\nlisten: {{{listen}}}\n"

    assert list(load_text(text).config.upstream.brokers) == [node_id]

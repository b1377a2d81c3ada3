"""Options are accepted as users write them, and invalid options cause clear messages."""

from pathlib import Path

import pytest

from sluicegate.pipeline.kafka.settings import BadSetting, client_settings, read_settings
from sluicegate.pipeline.source.arrow import UnknownColumn, columns_named
from sluicegate.pipeline.source.bounds import BadOption
from sluicegate.pipeline.source.options import source_options

NEEDED = {"kafka.bootstrap.servers": "a:9092, [::1]:9093", "subscribe": "t, u"}


def test_options_have_the_documented_defaults() -> None:
    options = source_options(NEEDED)

    assert options.bootstrap == (("a", 9092), ("::1", 9093))
    assert options.subscription.topics == ("t", "u")
    assert (options.start.offset, options.end.offset) == (-2, -1)
    assert options.committed
    assert options.fail_on_data_loss


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"subscribe": " "}, "subscribePattern, assign is required .found none"),
        ({"kafka.bootstrap.servers": "a"}, "expected host:port, found 'a'"),
        ({"startingOffsets": "first"}, "expected earliest, latest or"),
        ({"endingOffsets": '{"t": 5}'}, "endingOffsets: expected"),
        ({"startingTimestamp": "noon"}, "startingTimestamp: expected a time in ms"),
        ({"minPartitions": "0"}, "minPartitions: expected a number above 0"),
        ({"failOnDataLoss": "maybe"}, "expected true or false"),
        ({"isolation.level": "serializable"}, "read_committed or read_uncommitted"),
        ({"subscibe": "t"}, "did you mean subscribe"),
    ],
)
def test_invalid_options_are_reported(given: dict[str, str], output: str) -> None:
    with pytest.raises(BadOption, match=output):
        source_options(NEEDED | given)


def test_an_unknown_column_is_reported() -> None:
    with pytest.raises(UnknownColumn, match="did you mean value_size"):
        columns_named("offset,value_sise")


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"security.protocol": "tls"}, "expected one of plaintext, ssl"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "GSSAPI"}, "expected one of PLAIN"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u"}, "needs sasl.password"),
        ({"ssl.ca.locaton": "ca.pem"}, "did you mean 'ssl.ca.location'"),
        ({"socket.timeout.ms": "-1"}, "a number of milliseconds"),
    ],
)
def test_rejects_invalid_client_settings(given: dict[str, str], output: str) -> None:
    with pytest.raises(BadSetting, match=output):
        client_settings(given)


def test_reads_client_settings_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\nsecurity.protocol=SASL_SSL\nsasl.mechanism = PLAIN\nsasl.username=u\nsasl.password=a=b\n")

    settings = client_settings(read_settings(file))

    assert settings.tls
    assert settings.login is not None
    assert settings.login.password == "a=b"
    file.write_text("security.protocol=ssl\nwhat\n")
    with pytest.raises(BadSetting, match="line 2: expected name=value"):
        read_settings(file)

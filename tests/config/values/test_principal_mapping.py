"""Rules map subjects exactly as Kafka's own SslPrincipalMapper does."""

import random
from base64 import b64decode, b64encode

import pytest

from sluicegate.config.values.principal_mapping import PrincipalMapping
from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder

ALICE = "CN=Alice Ärm,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=SE"
SUBJECTS = (ALICE, "CN=kafka1/host@realm,O=a\\,b", "CN=İx,DC=test", "OU=x", "")
KNOWN = (
    "DEFAULT",
    "",
    " , ,DEFAULT , ",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
    "RULE:.*/x/",
    "RULE:(.*)/[$1]/U",
    r"RULE:CN=(.*?)\/(.*?)@realm.*/$2\/$1$3/L,DEFAULT",
    "RULE:(CN=)(.*?),.*/$22$3$4$10/",
    "RULE:(.*)/$2$3/",
    "RULE:CN=(?<name>[^,]*),.*/${name}!/",
    "RULE:.*/${name}/",
    "RULE:.*/$1/",
    "RULE:.*/$/",
    "RULE:.*/a\\\\/",
    "RULE:CN=([^,]*)(,DC=test)?.*/<$1|$2>/L",
    "RULE:a/b",
    "RULE:a/b/X",
    "RULE:a/b/L/",
    "DEFAULTS",
    "default",
    "RULE:(/b/",
    "RULE:.*/b/LU",
    "RULE:.*/x/ U",
    "DEFAULT DEFAULT",
    "RULE:a/b,RULE:.*/d/",
)
PATTERNS = ("CN=(.*?),OU=(.*?),.*", "^(.*)$", "(CN)=([^,]+)(,.*)?", ".*", "CN=.*", "(.)(.)?.*", "([A-Z]+)=(.*)", "OU=x")
CASES = ("", "L", "U")
REPLACEMENTS = ("$1", "$2", "$0", "$3", "$12", "$1$5", "x", "", r"\$1", "$", "a$", "@", ",", r"\/", "${n}", "$01", " ")


def random_mapping_rules(count: int) -> list[str]:
    chance = random.Random(47)
    rules = []
    for _ in range(count):
        each = [
            f"RULE:{chance.choice(PATTERNS)}/{''.join(chance.choices(REPLACEMENTS, k=2))}/{chance.choice(CASES)}"
            for _ in range(chance.randint(1, 3))
        ]
        each += ["DEFAULT"] * chance.randint(0, 1)
        rules.append(chance.choice([",", " , ", ", ,"]).join(each))
    return rules


def test_principal_mapping_equals_that_of_kafka() -> None:
    cases = [(rules, subject) for rules in (*KNOWN, *random_mapping_rules(600)) for subject in SUBJECTS]
    lines = "".join("\t".join(b64encode(each.encode()).decode() for each in case) + "\n" for case in cases)
    program = java_command(kafka_folder(KAFKA_NEW), str(ROOT / "tests/oracle/PrincipalMapper.java"))
    of_kafka = run_java(program, lines).splitlines()

    taken = 0
    said_of: dict[str, set[str]] = {}
    for (rules, _), said in zip(cases, of_kafka, strict=True):
        said_of.setdefault(rules, set()).add(said)
    for (rules, subject), expected in zip(cases, of_kafka, strict=True):
        try:
            name = PrincipalMapping(rules).name_of(subject)
        except ValueError:
            # Kafka reports a wrong replacement only if its pattern is the first that matches.
            assert rules not in KNOWN or "error" in said_of[rules], rules
            continue
        taken += 1
        of_broker = None if expected == "none" else b64decode(expected.removeprefix("=")).decode()
        assert name == of_broker, (rules, subject, expected)
    assert taken > len(cases) / 4


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("RULE:a/b", "expected rules as RULE:"),
        ("RULE:[a[b]]/b/", "means something else to a broker"),
        ("RULE:[a-z&&[^b]]/b/", "means something else to a broker"),
        (r"RULE:(a)\1/b/", "means something else to a broker"),
        ("RULE:(?U)a/b/", "means something else to a broker"),
        ("RULE:(?=a)a/b/", "look-around has no linear time"),
        ("RULE:a/$1/", "names no group"),
        ("RULE:a/b/," * 2000, "write at most 10000"),
    ],
)
def test_rejects_unsupported_principal_mapping_rules(rules: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PrincipalMapping(rules)


def test_principal_mapping_takes_linear_time_and_ignores_overlong_subjects() -> None:
    assert PrincipalMapping("RULE:(a*)*(a*)*b/x/,DEFAULT").name_of("a" * 8000) == "a" * 8000
    assert PrincipalMapping("DEFAULT").name_of("a" * 9000) is None

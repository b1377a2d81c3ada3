"""Login modules in properties files are parsed as Java's `Properties` and Kafka's own parser do it."""

import os
import random
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

from sluicegate.proxy.bootstrap.client_settings import UnusableClientSettings, upstream_from
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder

SETTINGS = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PREFIX = f"sasl.jaas.config={MODULE} required username="
PASSWORDS = (
    *(
        "secret",
        '"secret"',
        "'secret'",
        '"a\\b"',
        '"a\\\\b"',
        '"a\\\\\\\\b"',
        "'a\"b'",
        '"a\\"b"',
        '"a\\\\"b"',
        '"a b"',
    ),
    *(
        "a\\ b",
        '"a\\ b"',
        '"\\u0041\\u00e9"',
        "\\u0041b",
        '"\\u005cn"',
        '"\\\\n"',
        '"\\\\101\\\\7"',
        '"\\\\400"',
        '"a;b"',
    ),
    *('"a//b"', "a//b", "a/*c*/", "/*c*/a", "a#b", '"a#b"', "5abc", "-abc", "-5", ".5", "abc5", "a.b", "a@b", "$a_b-c"),
    *('"a=b"', "a=b", '""', "''", '"abc', "'abc", '"a\\\n   b"', "a\\\n   b", '"a\\n"', '"a\\tb"', '"a\\\\tb"', "a:b"),
    *(
        '"\\ud83d\\ude00"',
        "\\u00e9",
        "\\u0085a",
        "a\\u0100b",
        '"\\q"',
        '"\\\\q"',
        '"a\\\n#b"',
        "\\u12",
        '"a\\',
        '"',
        "\\",
    ),
)
ENDINGS = (
    ";",
    " ;",
    "",
    " other=x;",
    f"; {MODULE} required password=z;",
    "; // end",
    ";x",
    " /* c */ ;",
    " password=last;",
)
OTHERS = (
    f"sasl.jaas.config : {MODULE} REQUIRED password=a username=b;",
    f"sasl.jaas.config {MODULE} optional password=a username=b;",
    f"  sasl.jaas.config\\\n = {MODULE} \\\n # required username=a password=b;",
    f"sasl.jaas.config={MODULE} needed username=a password=b;",
    f"sasl.jaas.config={MODULE} username=a password=b;",
    f"sasl.jaas.config={MODULE};",
    "sasl.jaas.config=;",
    "sasl.jaas.config=",
    f"sasl.jaas.config={MODULE} required username password;",
    f"sasl.jaas.config={MODULE} required username = a password = b ;",
    f"sasl.jaas.config={MODULE} required 5=x username=a password=b;",
    f"sasl.jaas.config={MODULE} required username=a password=b;\r\n"
    f"sasl.jaas.config={MODULE} required username=c password=d;",
    f"sasl.jaas.config={MODULE} required username=a \\\r\n\tpassword=b;",
    f"!sasl.jaas.config=x\\\nsasl.jaas.config={MODULE} required username=a password=b;",
    f"sasl\\.jaas.config={MODULE} required username=a password=b;",
)
PIECES = (
    '"',
    "'",
    "\\",
    "\\\\",
    "a",
    "b",
    "7",
    "0",
    ".",
    "-",
    "=",
    ";",
    " ",
    "/",
    "/*",
    "*/",
    "\\u0041",
    "\\n",
    "\\\n ",
    "\t",
    "#",
)


def password_files() -> list[str]:
    """Return files with each password and ending, and 600 of random pieces."""
    made = [f"{PREFIX}me password={password}{ending}\n" for password in PASSWORDS for ending in ENDINGS]
    drawn = random.Random(59)
    made += [
        f"{PREFIX}me password={''.join(drawn.choices(PIECES, k=drawn.randint(1, 9)))}{drawn.choice(ENDINGS)}\n"
        for _ in range(600)
    ]
    return made + list(OTHERS)


def passwords_read_by_kafka(all_files: list[str]) -> list[str]:
    folder = kafka_folder(KAFKA_NEW)
    arguments = [b64encode(file.encode("latin-1")).decode() for file in all_files]
    program = Path(__file__).parent / "java/ReadJaas.java"
    done = subprocess.run(
        ["java", "-cp", f"{folder}{os.sep}*", str(program), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def login_read_by_bootstrap(file: Path) -> tuple[str, str] | str:
    try:
        sasl = upstream_from(file)["sasl"]
    except UnusableClientSettings as error:
        return str(error)
    return sasl["username"], sasl["password"]


def test_reads_passwords_as_kafka_does_or_rejects_the_line(tmp_path: Path) -> None:
    given = password_files()
    compared = 0

    for text, line in zip(given, passwords_read_by_kafka(given), strict=True):
        (file := tmp_path / "client.properties").write_bytes((SETTINGS + text).encode())
        read = login_read_by_bootstrap(file)

        verdict, *encoded = line.split(" ")
        options = tuple(b64decode(each[1:]).decode() if each.startswith("=") else "" for each in encoded)
        if verdict == "ok" and all(options):
            assert read == options, text
            compared += 1
        elif verdict == "ok":
            assert isinstance(read, str), text
            assert "are required" in read, text
        else:
            assert verdict == "rejected", line
            assert isinstance(read, str), (text, read)
            assert read.startswith("line "), (text, read)
    assert compared > 200


def test_a_character_outside_of_ascii_is_named_with_its_line_and_without_the_secret(tmp_path: Path) -> None:
    """Kafka's tools read the file as ISO 8859-1 and others as UTF-8, so that the password would differ."""
    (file := tmp_path / "client.properties").write_text(f'{SETTINGS}{PREFIX}me password="plantedé";\n')

    read = login_read_by_bootstrap(file)

    assert isinstance(read, str)
    assert read.startswith("line 3: sasl.jaas.config")
    assert "planted" not in read


def test_librdkafkas_passwords_have_no_escapes(tmp_path: Path) -> None:
    (file := tmp_path / "client.properties").write_text(f"{SETTINGS}sasl.username=me\nsasl.password=a\\b\\u0041é\n")

    assert login_read_by_bootstrap(file) == ("me", "a\\b\\u0041é")

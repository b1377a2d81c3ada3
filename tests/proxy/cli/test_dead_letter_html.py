"""The HTML report of `dead-letters show` loads nothing, and shows text from strangers as text."""

from html.parser import HTMLParser
from typing import Any

from sluicegate.proxy.cli.dead_letter_html import groups_html

HOSTILE = '<script>alert("1")</script>\' onload=x <img src="https://example.com/x.png"> {0} \u202e'
SHOWN = HOSTILE.replace("\u202e", "\\u202e")


class Page(HTMLParser):
    """Collects the tags, the attributes and the texts of a page, as the parser of Python reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def group(letters: int, text: str = "") -> dict[str, Any]:
    contents = {"key": None, "value": {"size": 1234, "text": text}}
    return {
        "id": "93a7c97e",
        "letters": letters,
        "error": text,
        "rules": [text],
        "stage": text,
        "text": text,
        "first_ms": 1_764_500_000_000,
        "last_ms": 1_764_500_060_000,
        "formats": {"connect": letters},
        "from_topics": {text: letters},
        "clients": {text: letters, "": 1},
        "schema_ids": {},
        "example": {"partition": 0, "offset": 7, "contents": contents},
    }


def page(*groups: dict[str, Any], topic: str = "orders.dlq", others: int = 0) -> Page:
    content = {"topic": topic, "not_letters": others, "groups": list(groups)}
    return Page("".join(groups_html(content, 1_764_500_100_000)))


def test_untrusted_text_is_escaped_in_html() -> None:
    found = page(group(3, HOSTILE), topic=HOSTILE)

    assert found.tags & {"script", "img"} == set()
    assert found.attributes & {"onload", "src", "href"} == set()
    assert f"Dead letters of {SHOWN}" in found.texts
    assert {SHOWN, f"{SHOWN} (rule {SHOWN})", f"{SHOWN} 3"} <= set(found.texts)


def test_dead_letter_page_shows_counts_times_and_examples() -> None:
    found = page(group(3000, "Converting failed"), group(1000), others=2)

    assert "4,000 dead letters in 2 groups; 2 other records. Made at 2025-11-30T10:55:00Z." in " ".join(
        "".join(found.texts).split()
    )
    assert {"3,000 (75 %)", "1,000 (25 %)", "2025-11-30T10:53:20Z to 2025-11-30T10:54:20Z"} <= set(found.texts)
    assert {"Converting failed 3,000", "partition 0, offset 7", "(1,234 bytes)", "no error (rule )"} <= set(found.texts)


def test_timestamp_outside_date_range_is_shown_as_number() -> None:
    found = page({**group(1), "last_ms": 2**62})

    assert f"2025-11-30T10:53:20Z to {2**62} ms" in found.texts


def test_dead_letter_page_lists_only_200_largest_groups() -> None:
    texts = page(*(group(1, f"error {number}") for number in range(201))).texts

    assert "error 199" in texts
    assert "error 200" not in texts
    assert "1 smaller groups are not listed; --json lists all." in texts


def test_topic_without_dead_letters_renders_valid_page() -> None:
    assert "0 dead letters in 0 groups" in "".join(page().texts)

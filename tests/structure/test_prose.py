"""The share of sentences that native engineers would not write stays below a limit in each top-level folder."""

from dataclasses import dataclass

import pytest

from tests.structure.prose import PATTERNS, Sentence, places_with_prose, sentences_in, sentences_of

LIMITS = {  # percent of the sentences
    ".": 2.0,
    "bench": 2.0,
    "config": 2.0,
    "dead_letters": 2.0,
    "deploy": 2.0,
    "docs": 2.0,
    "pipeline": 2.0,
    "protocol": 2.0,
    "proxy": 2.0,
    "scripts": 2.0,
    "sluicegate": 2.0,
    "tests": 10.0,
    "validation": 2.0,
}
_SHOWN = 40


@dataclass(frozen=True)
class AllowedSentences:
    """Allowed sentences: the sentences of a file that contain a text. An empty text allows the whole file."""

    path: str
    text: str
    reason: str

    def covers(self, sentence: Sentence) -> bool:
        return sentence.path == self.path and self.text in sentence.text


ALLOWED = [
    AllowedSentences("tests/structure/prose.py", "", "the patterns themselves"),
    AllowedSentences("tests/structure/test_prose.py", "", "the examples of this file"),
]


def unplain_sentences(place: str) -> tuple[list[Sentence], float]:
    """Return the sentences of a place that match a pattern, and their share of all its sentences in percent."""
    sentences = [text for text in sentences_of(place) if not any(allowed.covers(text) for allowed in ALLOWED)]
    found = [sentence for sentence in sentences if sentence.patterns]
    return found, 100 * len(found) / max(len(sentences), 1)


def report_sentences(place: str, found: list[Sentence], percent: float) -> str:
    """Return one line with the share and the limit, then each sentence with its file, line and pattern."""
    rows = [f"{found.path}:{found.line}: [{', '.join(found.patterns)}] {found.text}" for found in found[:_SHOWN]]
    if len(found) > _SHOWN:
        rows.append(f"and {len(found) - _SHOWN} more: python -m tests.structure.prose {place} --show 1000")
    head = f"{percent:.1f} % of the sentences in {place} need plainer words, the limit is {LIMITS[place]} %; rewrite:"
    return "\n".join([head, *rows])


@pytest.mark.parametrize("place", LIMITS)
def test_each_folder_stays_within_its_limit_of_unplain_sentences(place: str) -> None:
    found, percent = unplain_sentences(place)

    assert percent <= LIMITS[place], report_sentences(place, found, percent)


def test_every_top_level_folder_has_a_limit() -> None:
    assert places_with_prose() == sorted(LIMITS)


@pytest.mark.parametrize("allowed", ALLOWED, ids=lambda allowed: f"{allowed.path} {allowed.text}".strip())
def test_every_entry_of_the_allow_list_is_still_needed(allowed: AllowedSentences) -> None:
    assert allowed.reason
    assert any(allowed.covers(sentence) and sentence.patterns for sentence in sentences_of(allowed.path))


@pytest.mark.parametrize(
    ("pattern", "sentence", "plain"),
    [
        ("who or what as the subject", "Who sends this is closed.", "The proxy closes the connection."),
        ("who or what as the subject", "It is closed by whoever comes last.", "The last client closes it."),
        ("tell for report", "The client is told of the error.", "The client receives the error."),
        ("stand or lie for be", "The key stands in the header.", "The stand-in broker has the key."),
        ("go on, come to", "The proxy goes on with old rules.", "The proxy continues with old rules."),
        ("archaic word", "Nobody, or nobody whose name is known.", "No client, or no client with a known name."),
        ("behind for after", "The bytes behind the header.", "The clients behind the proxy."),
        ("where for if", "Where it has none, none is sent.", "Where to put the key is up to you."),
        ("one that, those that", "Only those that fail are sent.", "Only the failed batches are sent."),
        ("circumlocution", "The batch is to be sent once more.", "The client sends the batch once more."),
        ("hold for apply", "The rule that holds for all topics.", "The rule that applies to all topics."),
    ],
)
def test_a_pattern_finds_its_phrase_and_not_the_plain_one(pattern: str, sentence: str, plain: str) -> None:
    assert pattern in PATTERNS
    assert pattern in Sentence("docs/glossary.md", 1, sentence).patterns
    assert pattern not in Sentence("docs/glossary.md", 1, plain).patterns


@pytest.mark.parametrize(
    ("suffix", "text", "sentences"),
    [
        (
            ".md",
            "# A heading of four words\n\nOne sentence of\nfive words. `code` is not read here.\n",
            [(1, "# A heading of four words"), (3, "One sentence of five words."), (4, "CODE is not read here.")],
        ),
        (".md", "```\nan example is not read\n```\n", []),
        (
            ".md",
            "| a cell with four words | the second cell has six words |\n",
            [(1, "a cell with four words ."), (1, "the second cell has six words .")],
        ),
        (
            ".py",
            '"""The docstring of the module."""\nx = 1  # a comment with five words\ny = "too short"\n',
            [(1, "The docstring of the module."), (2, "a comment with five words")],
        ),
        (
            ".pyx",
            "# cython: language_level=3 is no sentence\n# but this is a comment\n",
            [(2, "but this is a comment")],
        ),
        (".js", 'show("Rejected batches per second");\n', [(1, "Rejected batches per second")]),
        (".yaml", "key: 1  # The default is one second\n", [(1, "The default is one second")]),
    ],
)
def test_sentences_are_read_from_each_kind_of_file(suffix: str, text: str, sentences: list[tuple[int, str]]) -> None:
    assert [(line, sentence.strip(". ")) for line, sentence in sentences_in(text, suffix)] == [
        (line, sentence.strip(". ")) for line, sentence in sentences
    ]


def test_the_report_names_file_line_pattern_and_sentence() -> None:
    found = [Sentence("docs/glossary.md", 7, "The client is told of the error.")] * (_SHOWN + 2)

    lines = report_sentences("docs", found, 30.0).split("\n")

    assert lines[0].startswith("30.0 % of the sentences in docs need plainer words, the limit is ")
    assert lines[1] == "docs/glossary.md:7: [tell for report] The client is told of the error."
    assert lines[-1] == "and 2 more: python -m tests.structure.prose docs --show 1000"

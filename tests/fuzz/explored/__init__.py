"""Defines coverage-guided fuzzing: targets that accept arbitrary bytes, and the corpus of earlier runs."""

"""Coverage-guided fuzzing: targets that take arbitrary bytes, and the corpus of earlier runs."""

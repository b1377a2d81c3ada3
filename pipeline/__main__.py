"""`python -m pipeline`, and what spark-submit runs."""

from pipeline.cli import main

main()

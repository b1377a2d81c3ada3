"""What becomes of a batch that was judged."""

FORWARDED, FIXED, REFUSED, QUARANTINED = "forwarded", "fixed", "refused", "quarantined"
OUTCOMES = (FORWARDED, FIXED, REFUSED, QUARANTINED)
"""One whose bad records were kept is refused too, and counted once."""

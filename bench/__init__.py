"""What measures; not part of the installed package."""

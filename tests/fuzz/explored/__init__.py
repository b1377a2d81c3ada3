"""What is explored by coverage: targets that take any bytes, and the corpus that runs have found."""

"""Data contracts of the Open Data Contract Standard (`contracts`), which give topics rules and an owner."""

"""Data contracts that follow the Open Data Contract Standard (`contracts`). They give topics rules and an owner."""

"""What the fast path validates natively of a rule."""

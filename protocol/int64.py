"""Java's long: what it can hold, and its bit patterns as unsigned numbers."""

LONG_MAX = 0x7FFF_FFFF_FFFF_FFFF
SIGN_64 = 0x8000_0000_0000_0000
ALL_64 = 0xFFFF_FFFF_FFFF_FFFF

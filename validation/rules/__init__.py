"""The operator's rules about records, beyond the checks of a broker."""

"""What may be written: policies, and the validation of batches against them. No I/O, no clock."""

"""What may be written: policies, and the judgement of batches against them. No I/O, no clock."""

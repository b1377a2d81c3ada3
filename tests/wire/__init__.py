"""What tests write onto the wire and read from it: batches and requests, right or wrong on purpose."""

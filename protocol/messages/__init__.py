"""One file for each API whose messages sluicegate reads or writes; each opens with its versions and changes."""

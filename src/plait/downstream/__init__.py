"""Where clients come in: I/O only; the rules are in `session`."""

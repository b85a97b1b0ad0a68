"""Bytes and messages: the vocabulary everybody shares. Nothing here waits, writes or knows the time."""

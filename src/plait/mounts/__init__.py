"""What is behind us: each server's life, and all of them together."""

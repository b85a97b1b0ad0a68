"""The one HTTP client that all our outbound traffic uses, and the addresses it may connect to."""

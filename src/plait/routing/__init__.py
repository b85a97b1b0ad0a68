"""Whose is it? Names, the catalog of all that we expose, and the way there and back."""

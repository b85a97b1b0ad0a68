"""Our numbers and every peer's, side by side in one run (`python -m bench`)."""

"""The layers every request crosses, and how they become one handler."""

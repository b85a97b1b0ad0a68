"""The version of plait, for the package, the handshake and `--version` alike."""

VERSION = "0.1.0"

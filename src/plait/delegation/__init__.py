"""Handing a task on: who does it, with which tools, as whom, and for how much."""

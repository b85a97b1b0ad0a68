"""What the exit codes mean; the MCP Inspector's, plus two of ours. 2 is left free."""

OK = 0
UNEXPECTED = 1
UNREACHABLE = 4
TOOL_ERROR = 5
DENIED = 6
CONFIG = 7

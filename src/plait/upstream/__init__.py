"""Where servers are called: transports, and the client half of MCP that mounts use."""

"""Parts of plait that are mounted from the start, beside the servers: resources, state, administration."""

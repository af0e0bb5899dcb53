"""Train one run: from its configuration to its scores."""

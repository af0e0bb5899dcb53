"""Our samplers inside other people's libraries, one file a library, each imported on request."""

"""Use the samplers in other libraries: one module a library, imported on request."""

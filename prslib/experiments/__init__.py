"""Many runs: stored, planned and trained side by side or on a cluster."""

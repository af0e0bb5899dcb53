"""Many runs: trained side by side or on a cluster, interrupted and resumed, listed and planned."""

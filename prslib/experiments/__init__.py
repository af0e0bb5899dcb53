"""Train many runs side by side or on a cluster, store them, and estimate their cost."""

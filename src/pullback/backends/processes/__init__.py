"""Several processes that compute together, forked processes, and the end of a process."""

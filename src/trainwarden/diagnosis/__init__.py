"""Series and observations to findings: pure."""

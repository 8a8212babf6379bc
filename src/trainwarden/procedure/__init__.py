"""The nine steps: gates, seals, the session, the job's state."""

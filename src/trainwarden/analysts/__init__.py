"""Whoever predicts and reasons: here the built-in rules and the built-in reviewer."""

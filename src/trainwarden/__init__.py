"""Watches training runs so that a verdict always follows from evidence."""

__version__ = "0.1.0"

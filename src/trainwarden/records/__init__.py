"""The words of the house as typed records: no input or output, nothing else of the house."""

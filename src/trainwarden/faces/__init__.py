"""The faces shown to people and programs: thin."""

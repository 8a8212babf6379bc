"""Decides on tool calls of a Claude Code session while a trainwarden session is open.

Standard library only, and nothing else of the house: it is started anew for every tool call as
`python3 -I -S`, by whatever Python the machine has. `re`, `json`, `pathlib` and their like are not
imported on its usual way, since each costs as much as the interpreter's whole start.
"""

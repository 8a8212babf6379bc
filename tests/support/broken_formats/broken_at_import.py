"""A plug-in that cannot be imported."""

raise RuntimeError("broken at import")

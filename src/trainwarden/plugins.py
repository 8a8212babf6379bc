"""Plug-ins of other packages, loaded when first asked for; a broken one is reported, not fatal."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pluggy

GROUP = "trainwarden"


@dataclass
class Plugins:
    """What the installed plug-ins offer, and which of them could not be used and why."""

    formats: tuple[Any, ...] = ()
    sources: tuple[Any, ...] = ()
    detectors: tuple[Any, ...] = ()
    problems: list[str] = field(default_factory=list)


def gather(manager: pluggy.PluginManager, problems: list[str]) -> Plugins:
    """Ask every registered plug-in for its parts, each by itself so that one cannot spoil all."""
    parts: dict[str, list[Any]] = {"log_formats": [], "sources": [], "detectors": []}
    for name, plugin in manager.list_name_plugin():
        if plugin is None:
            continue
        others = [p for p in manager.get_plugins() if p is not plugin]
        for part, found in parts.items():
            hook = manager.subset_hook_caller(f"trainwarden_{part}", others)
            try:
                for answer in hook():
                    found.extend(answer)
            except Exception as error:  # whatever a stranger's code raises
                problems.append(f"plug-in {name}: {part}: {type(error).__name__}: {error}")
    return Plugins(
        tuple(parts["log_formats"]), tuple(parts["sources"]), tuple(parts["detectors"]), problems
    )


@lru_cache(maxsize=1)
def plugins() -> Plugins:
    """The installed plug-ins' parts. Entry points are looked for once."""
    from importlib.metadata import entry_points

    points = entry_points(group=GROUP)
    if not points:
        return Plugins()
    import pluggy

    from trainwarden import hookspecs

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    problems: list[str] = []
    for point in points:
        try:
            manager.register(point.load(), name=point.name)
        except Exception as error:  # a package that cannot be imported
            problems.append(f"plug-in {point.name}: {type(error).__name__}: {error}")
    return gather(manager, problems)


def log_formats() -> tuple[Any, ...]:
    """Log formats of plug-ins."""
    return plugins().formats


def sources() -> tuple[Any, ...]:
    """Evidence sources of plug-ins."""
    return plugins().sources


def detectors() -> tuple[Any, ...]:
    """Detectors of plug-ins."""
    return plugins().detectors

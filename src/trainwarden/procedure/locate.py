"""Which job is meant: from what was given, from known jobs, from what runs here, from files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trainwarden.errors import Refusal, Trouble
from trainwarden.evidence import stores
from trainwarden.evidence.config import find_config
from trainwarden.evidence.discovery import FoundJob, find_for
from trainwarden.evidence.run_files import newest_run
from trainwarden.procedure.state import StateStore
from trainwarden.records.job import Job, job_id
from trainwarden.records.state import JobState

LOG_PATTERNS = ("*.log", "*.out", "trainer_state.json", "*.jsonl", "*log*.txt", "*.csv")


def locate(
    store: StateStore,
    *,
    root: Path,
    logs: Iterable[str] = (),
    config: str | None = None,
    model: str | None = None,
    guidance: str | None = None,
    job: str | None = None,
) -> Job:
    """The job that is meant. All paths given are taken from the current folder.

    Raises Refusal where something given does not exist, or where nothing is given and the job is
    not clear: the message lists what there is to choose from.
    """
    given_logs = tuple(_existing(log, "log") for log in logs)
    given_config = _existing(config, "config") if config else None
    given_model = _model(model) if model else None
    if job is not None:
        return _known(store, job, given_logs, guidance)
    if given_config or given_model:
        return _assemble(store, given_config, given_model, given_logs, guidance, root)
    if given_logs:
        for state in _states(store):
            if set(given_logs) & set(state.meta.logs):
                return _known(store, state.meta.job, given_logs, guidance)
        found = [one for one in _running(root) if set(given_logs) & set(_logs(one))]
        if len(found) == 1:
            return _from_found(store, found[0], given_logs, guidance, root)
        near = find_config(Path(given_logs[0]).parent)
        return _assemble(store, str(near) if near else None, None, given_logs, guidance, root)
    return _from_nothing(store, root, guidance)


def _from_nothing(store: StateStore, root: Path, guidance: str | None) -> Job:
    states = list(_states(store))
    if len(states) == 1:
        return _known(store, states[0].meta.job, (), guidance)
    if states:
        listed = "\n".join(f"  --job {state.meta.job}" for state in states)
        raise Refusal(f"several jobs are known here; say which one:\n{listed}")
    found = _running(root)
    if len(found) == 1:
        return _from_found(store, found[0], (), guidance, root)
    if found:
        listed = "\n".join(
            f"  pid {one.pid}: {one.command}\n    --log {' --log '.join(_logs(one)) or '?'}"
            for one in found
        )
        raise Refusal(f"several training jobs run under {root}; say which one:\n{listed}")
    config = find_config(root)
    logs = _newest_logs(root)
    if config is None and not logs:
        raise Refusal(
            f"no job is known, none runs and no log was found under {root}: name one with "
            "--log FILE (and --config FILE), or another folder with --root"
        )
    return _assemble(store, str(config) if config else None, None, logs, guidance, root)


def _existing(path: str, what: str) -> str:
    try:
        full = Path(path).expanduser().absolute()
        if not stores.exists(full):
            raise Refusal(f"the {what} {full} does not exist: check the path given with --{what}")
    except (OSError, RuntimeError, ValueError) as error:
        raise Refusal(f"the {what} {path} cannot be looked at: {error}") from error
    return _named(str(full), what)


def _named(path: str, what: str) -> str:
    if not _is_text(path):
        raise Refusal(f"the path of the {what} is not UTF-8, so no state can name it: rename it")
    return path


def _is_text(path: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in path)


def _model(model: str) -> str:
    """A local folder or file as a full path; a hub's name stays a name."""
    try:
        local = Path(_named(model, "model")).expanduser()
        return str(local.absolute()) if local.exists() else model
    except (OSError, RuntimeError, ValueError):
        return model


def _states(store: StateStore) -> Iterable[JobState]:
    for name in store.known():
        try:
            state, _ = store.load(name)
        except Trouble:
            continue
        if state is not None:
            yield state


def _known(store: StateStore, name: str, logs: tuple[str, ...], guidance: str | None) -> Job:
    state, note = store.load(name)
    if state is None:
        known = ", ".join(store.known()) or "none"
        raise Refusal(note or f"no job {name} is known here; known jobs: {known}")
    earlier = state.monitor.user_guidance
    return Job(
        id=name,
        config=state.meta.config,
        model=state.meta.model,
        # The logs named now are the run that is meant; an earlier run's are its history.
        logs=logs or tuple(state.meta.logs),
        guidance=guidance or (earlier[-1] if earlier else None),
    )


def _assemble(
    store: StateStore,
    config: str | None,
    model: str | None,
    logs: tuple[str, ...],
    guidance: str | None,
    root: Path,
) -> Job:
    name = job_id(config, model, logs[0] if logs else None)
    state, _ = store.load(name)
    if state is not None:
        return _known(store, name, logs, guidance)
    if not logs:
        found = [one for one in _running(root) if config and one.config == config]
        logs = tuple(_logs(found[0])) if len(found) == 1 else ()
        logs = logs or _newest_logs(Path(config).parent if config else root)
    return Job(id=name, config=config, model=model, logs=logs, guidance=guidance)


def _from_found(
    store: StateStore, found: FoundJob, logs: tuple[str, ...], guidance: str | None, root: Path
) -> Job:
    every = tuple(dict.fromkeys((*logs, *_logs(found))))
    if not (found.config or found.model or every):
        raise Refusal(
            f"the training process {found.pid} names no config, model or log: say where it logs "
            "with --log FILE"
        )
    return _assemble(store, found.config, found.model, every, guidance, root)


def _logs(found: FoundJob) -> list[str]:
    return [str(log) for log in found.logs if _is_text(str(log))]


def _running(root: Path) -> list[FoundJob]:
    return list(find_for(root))


def _newest_logs(folder: Path) -> tuple[str, ...]:
    """The newest log of a folder (its own files first, then one level below)."""
    for depth in ("", "*/"):
        found = {path for pattern in LOG_PATTERNS for path in folder.glob(depth + pattern)}
        files = [
            path
            for path in found
            if path.is_file() and "monitoring-logs" not in path.parts and _is_text(str(path))
        ]
        if files:
            return (str(max(files, key=lambda path: path.stat().st_mtime).absolute()),)
    found_runs = [*newest_run(folder), *stores.stores_in(folder)]
    runs = [path for path in found_runs if _is_text(str(path))]
    return tuple(str(path.absolute()) for path in runs)

"""Real small runs with real faults, and sound twins, each watched live by `trainwarden run`.

    python benchmarks/rig/run.py [--quick] [--only NAME …] [--jobs 1] [--json FILE]

The trainers need the environment that `benchmarks/rig/install.sh` makes; without it only those of
the plain trainer are run, and that is said. Exits with 1 when a fault was missed, a twin raised a
finding above information, or a run could not be carried out.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.cases import CASES, Case
from rig.report import closing, row, summary, table
from rig.watch import Outcome, run_case

HERE = Path(__file__).resolve().parent


def has_torch(python: Path) -> bool:
    """Whether this interpreter has what the trainers need."""
    look = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
    names = ("torch", "transformers", "trl")
    try:
        return subprocess.run([str(python), "-c", look, *names], check=False).returncode == 0
    except OSError:
        return False


def chosen(only: list[str], quick: bool) -> list[Case]:
    """The cases asked for; patterns as of a shell."""
    cases = [case for case in CASES if case.quick or not quick]
    if only:
        cases = [c for c in cases if any(fnmatch.fnmatchcase(c.name, one) for one in only)]
    return cases


def main() -> int:
    """Read the command line, run, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="name or pattern; repeatable")
    parser.add_argument("--quick", action="store_true", help="a few runs of each trainer")
    parser.add_argument("--list", action="store_true", help="print the cases' names")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between looks")
    parser.add_argument("--to-end", action="store_true", help="watch on after a fault was named")
    parser.add_argument("--python", type=Path, default=HERE / ".venv/bin/python")
    parser.add_argument("--runs", type=Path, help="keep logs and sessions here; default: a new one")
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args()
    cases = chosen(options.only, options.quick)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    torch = has_torch(options.python)
    skipped = [case for case in cases if case.needs_torch and not torch]
    cases = [case for case in cases if case not in skipped]
    if skipped:
        print(f"{len(skipped)} runs left out: no PyTorch at {options.python}", file=sys.stderr)
        print(f"(make it: {HERE / 'install.sh'})", file=sys.stderr)
    # The stamp makes every run's folder, hence its job, a new one.
    base = options.runs or Path(tempfile.gettempdir()) / "trainwarden-rig"
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="rig-", dir=base.resolve()))
    # A signal must not leave trainings behind: it becomes an exception.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def one(case: Case) -> Outcome:
        python = options.python if case.needs_torch else Path(sys.executable)
        return run_case(case, folder / case.name, python, options.interval, options.to_end)

    outcomes: dict[str, Outcome] = {}
    with ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        for future in as_completed([pool.submit(one, case) for case in cases]):
            outcome = future.result()
            outcomes[outcome.case.name] = outcome
            print("  ".join(row(outcome)), file=sys.stderr, flush=True)
    ordered = [outcomes[case.name] for case in cases]
    told = {**summary(ordered), "left_out": [case.name for case in skipped]}
    (folder / "report.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(told, indent=1), encoding="utf-8")
    print(table([row(outcome) for outcome in ordered]))
    print(closing(told))
    print(f"logs, sessions and report.json: {folder}")
    good = not told["not_carried_out"] and told["caught"] == told["faults"]
    return 0 if good and not told["twins_with_false_alarm"] else 1


if __name__ == "__main__":
    sys.exit(main())

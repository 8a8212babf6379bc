"""A project with a run, its evidence and a plugin, for judging tool calls in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trainwarden.guard import tools
from trainwarden.guard.record import Open

MARKER = "loss=0.31337"
STAGES = ("early", "late", "act", "other")


class Project:
    """A folder with code, a config, a log, an output folder, gates, and tricks with links."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "project"
        self.plugin = base / "plugin"
        self.elsewhere = base / "elsewhere"
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in (
            "skills/training-monitor/SKILL.md",
            "skills/grpo-monitor/SKILL.md",
            "skills/wandb-monitor/SKILL.md",
            "commands/status.md",
            "steps/1-predict.md",
            "bin/trainwarden",
        ):
            path = self.plugin / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text\n", encoding="utf-8")
        (self.plugin / "bin" / "trainwarden").chmod(0o755)
        (self.elsewhere / "copy" / "monitoring-logs").mkdir(parents=True)
        (self.elsewhere / "other.log").write_text(MARKER + "\n", encoding="utf-8")
        (self.elsewhere / "stray.yaml").write_text("a: 1\n", encoding="utf-8")
        (self.root / ".git").mkdir()
        (self.root / "link.yaml").symlink_to("train.log")
        (self.root / "folder").symlink_to("outputs")
        (self.root / "away").symlink_to(self.elsewhere)
        (self.root / "gate").symlink_to("monitoring-logs")
        os.link(self.root / "train.log", self.root / "hard.yaml")

    def open(self, next: int = 1, authority: str = "observe") -> Open:  # noqa: A002
        """An open session of this project."""
        root = str(self.root)
        return Open(
            {
                "session": "2026-12-01_120000",
                "job": "job",
                "client": "client",
                "root": root,
                "authority": authority,
                "next": next,
                "revision": 1,
                "command": "trainwarden predict" if next == 1 else "trainwarden assess",
                "evidence": [f"{root}/train.log", f"{root}/outputs", f"{root}/wandb"],
                "config": [f"{root}/config.yaml", f"{root}/models/tiny"],
            }
        )

    def held(self, stage: str) -> list[Open]:
        """The sessions of the client at a stage: early, late, act, or other (none)."""
        if stage == "other":
            return []
        if stage == "early":
            return [self.open()]
        return [self.open(4, "act" if stage == "act" else "observe")]

    def refusal(self, stage: str, tool: str, given: dict[str, Any], **more: Any) -> str | None:
        """What the guard says to a call; `{P}`, `{B}`, `{G}`, `{E}` stand for the folders."""
        call = {
            "tool_name": tool,
            "tool_input": {name: self.put(value) for name, value in given.items()},
            "cwd": str(self.root),
            "session_id": "client",
            **more,
        }
        return tools.refusal(call, self.held(stage), 1, str(self.root), str(self.plugin))

    def put(self, value: Any) -> Any:
        """A text with the folders' paths filled in."""
        if not isinstance(value, str):
            return value
        for sign, folder in (
            ("{P}", self.root), ("{B}", self.base), ("{G}", self.plugin), ("{E}", self.elsewhere)
        ):  # fmt: skip
            value = value.replace(sign, str(folder))
        return value


FILES = {
    "train.py": "import model\nsteps = 100\n",
    "src/model.py": "width = 3\n",
    "src/logs/__init__.py": "",
    "config.yaml": "lr: 0.001\n",
    "configs/base.yaml": "lr: 0.1\n",
    "configs/ds_config.json": "{}\n",
    "models/tiny/config.json": "{}\n",
    "README.md": "a project\n",
    "Makefile": "all:\n\techo\n",
    "requirements.txt": "torch\n",
    "run.sh": "python train.py\n",
    "notebook.ipynb": f'{{"cells": ["{MARKER}"]}}\n',
    "train.log": f"step 1 {MARKER}\n",
    "nohup.out": f"{MARKER}\n",
    "slurm-17.out": f"{MARKER}\n",
    "metrics.jsonl": f"{MARKER}\n",
    "loss.csv": f"{MARKER}\n",
    "plot.png": MARKER,
    "trainer_state.json": f'["{MARKER}"]\n',
    "all_results.json": f'["{MARKER}"]\n',
    "metrics.yaml": f"a: {MARKER}\n",
    "eval_results.md": f"{MARKER}\n",
    "outputs/checkpoint-500/trainer_state.json": f'["{MARKER}"]\n',
    "outputs/checkpoint-500/README.md": f"{MARKER}\n",
    "outputs/checkpoint-500/config.json": f'["{MARKER}"]\n',
    "outputs/notes.yaml": f"a: {MARKER}\n",
    "runs/exp/hparams.yaml": f"a: {MARKER}\n",
    "runs/exp/events.out.tfevents.1": MARKER,
    "wandb/run-1/files/config.yaml": f"a: {MARKER}\n",
    "wandb/run-1/run-1.wandb": MARKER,
    ".claude/settings.json": "{}\n",
    ".claude/commands/trainwarden/peek.md": "!`cat train.log`\n",
    ".claude/commands/trainwarden/wandb-monitor.md": "!`cat train.log`\n",
    "monitoring-logs/README.md": "about\n",
    "monitoring-logs/2026-11-01_120000/4-metrics.md": "an earlier gate\n",
    "monitoring-logs/2026-11-01_120000/session.json": "{}\n",
    "monitoring-logs/jobs/job.json": "{}\n",
    "monitoring-logs/readings/job.json": f'["{MARKER}"]\n',
    "monitoring-logs/guard/open/client.2026-12-01_120000.json": "{}\n",
}

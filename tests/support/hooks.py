"""The guard's hook as the client starts it: a process an event."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwarden.guard import record

ROOT = Path(__file__).parents[2]
HOOK = ROOT / "src" / "trainwarden" / "guard" / "hook.py"


def command(python: str, plugin: Path) -> list[str]:
    """How hooks.json has the client start the guard of a plugin."""
    hooks = json.loads((ROOT / "hooks" / "hooks.json").read_text())["hooks"]
    args = hooks["PreToolUse"][0]["hooks"][0]["args"]
    return [python, *(arg.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) for arg in args)]


@dataclass
class Said:
    """What a hook answered."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The object it printed; empty where it printed nothing."""
        return json.loads(self.out) if self.out else {}

    @property
    def why(self) -> str:
        """Why a call was refused; empty where it passed."""
        decision = self.answer.get("hookSpecificOutput", {})
        assert decision.get("permissionDecision") in (None, "deny")
        return str(decision.get("permissionDecisionReason", ""))

    @property
    def context(self) -> str:
        """What the model is told besides."""
        return str(self.answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


@dataclass
class Project:
    """A project with a run in it, watched by a client session."""

    root: Path
    client: str = "client-1"
    hook: Path = HOOK
    python: str = sys.executable
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """The plugin's folder for what lasts."""
        return self.root.parent / "plugin data"

    def hear(self, event: str, **fields: Any) -> Said:
        """Have the hook hear an event; a call stands in the conversation, as the client has it."""
        transcript = self.root.parent / "transcript.jsonl"
        used = {"type": "tool_use", "id": fields.get("tool_use_id"), "name": "-", "input": {}}
        entry = {"type": "assistant", "message": {"role": "assistant", "content": [used]}}
        transcript.write_text(json.dumps(entry) + "\n")
        known = {
            "session_id": self.client,
            "transcript_path": str(transcript),
            "cwd": str(self.root),
            "hook_event_name": event,
        }
        return self.feed(json.dumps(known | fields, separators=(",", ":")).encode())

    def feed(self, raw: bytes, environment: Mapping[str, str] | None = None) -> Said:
        """Have the hook hear anything at all."""
        self.data.mkdir(exist_ok=True)
        env = {
            "PATH": os.environ["PATH"],
            "CLAUDE_PROJECT_DIR": str(self.root),
            "CLAUDE_PLUGIN_DATA": str(self.data),
            "CLAUDE_CODE_SESSION_ID": self.client,
            **self.environment,
            **(environment or {}),
        }
        started = command(self.python, self.hook.parents[3])
        done = subprocess.run(started, input=raw, env=env, capture_output=True, cwd="/")
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def call(self, tool: str, use: str = "t1", **asked: Any) -> Said:
        """Have a tool call judged."""
        return self.hear("PreToolUse", tool_name=tool, tool_input=asked, tool_use_id=use)

    def begin(self, session: str = "2026-01-02_030405", **changed: Any) -> Path:
        """Open a session, as the runtime would; its file."""
        data = {
            "session": session,
            "job": "job-1",
            "client": self.client,
            "root": str(self.root),
            "authority": "observe",
            "next": 1,
            "revision": 1,
            "command": "trainwarden predict",
            "evidence": [str(self.root / "train.log"), str(self.root / "out")],
            "config": [str(self.root / "config.yaml")],
            **changed,
        }
        path = Path(record.open_path(str(self.root), data["client"], session))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data))
        return path

    def events(self, *names: str) -> list[dict[str, Any]]:
        """What is on record for the client, of those kinds."""
        found = record.events(str(self.root), self.client)
        return [event for event in found if not names or event["event"] in names]


def project(folder: Path, name: str = "a project") -> Project:
    """A project with config, code and a log of 300 steps."""
    root = folder / name
    (root / "out").mkdir(parents=True)
    (root / "config.yaml").write_text("max_steps: 2000000\nlearning_rate: 3.0e-4\n")
    (root / "train.py").write_text("loss = model(batch[0:12], steps=1000)\n")
    (root / "train.log").write_text(
        "max_steps: 2000000\n"
        + "".join(f"step {n} | loss {4 - n / 1000:.4f} | lr 3.0e-4\n" for n in range(300))
    )
    return Project(root)

"""What a tool call may do while a session is open: the guard's judgement, whole."""

from __future__ import annotations

from trainwarden.guard.places import Ground, ending, of_type, spread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainwarden.guard.record import Open

REVIEWER = "trainwarden:quality-reviewer"
PLANNING = frozenset(
    "TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet AskUserQuestion EnterPlanMode"
    " ExitPlanMode ToolSearch StructuredOutput SendUserMessage".split()
)
READING = frozenset("Bash Read Grep Glob LS".split())
"""What a reviewer reads with."""
_WRITING = frozenset("Write Edit MultiEdit NotebookEdit".split())
_SHELLS = frozenset("Bash Monitor".split())
_STOPPING = frozenset("TaskStop KillShell KillBash".split())
_ELSEWHERE = frozenset("EnterWorktree ExitWorktree RemoteTrigger".split())
"""They change the repository, or go where no guard is."""
_CHANGING = frozenset(
    "write delete remove kill create update restart scale exec execute run apply patch stop cancel"
    " edit move rename set put post insert drop send terminate drain cordon rollout upload"
    " append replace abort suspend pause resume evict shutdown reboot destroy modify clear prune"
    " reset launch submit signal interrupt save sync push eval shell bash start trigger deploy"
    " enable disable merge restore add".split()
)
_ASKING = frozenset(
    "get list read show describe search query fetch find view count status log logs diff tree info"
    " history top events tail head check compare summary summarize analyze lookup resolve ask wait"
    " watch inspect explain ls usage metrics schema think sequentialthinking".split()
)
_PATH = 1_000
"""Characters of a text that could be a path."""
PROMPT = 200
"""Characters that a reviewer may be told."""
_AUDIT = frozenset(
    "audit the of to and with a an end please review seal seals sealed session sessions job gate"
    " gates its your verdict that is open".split()
)
"""What a reviewer may be told, besides the names of sessions and jobs, and numbers."""
_STEPS = frozenset("123456789")
_THINGS = frozenset("run set post rollout scale start launch".split())
"""What may be got or listed, as well as done."""


def refusal(
    call: dict[str, Any], held: list[Open], open_in_all: int, project: str, plugin: str
) -> str | None:
    """Why a tool call is refused, for the model to read; None for no opinion.

    `call` is what PreToolUse gets, `held` the sessions of this client, `open_in_all` how many
    sessions are open in the project.
    """
    if not open_in_all:
        return None
    tool = str(call.get("tool_name") or "")
    given = call.get("tool_input")
    given = given if isinstance(given, dict) else {}
    ground = Ground(str(call.get("cwd") or project), project, plugin, held)
    if not held:
        return _told_all(_lasting(tool, given, ground, plugin, act=False))
    if tool == "TodoWrite":
        return _todo(given, held)
    reviewer = call.get("agent_type") == REVIEWER
    first = next((one for one in held if one.next <= 1), None)
    if first is not None:
        return _told_early(_early(tool, given, ground, plugin, reviewer), first)
    if not reviewer:
        reason = _swayed(tool, given, held, (ground.cwd, ground.project))
        if reason:
            return reason
    else:
        return _told_reviewer(_observing(tool, given, ground, plugin, reviewer=True))
    if all(one.authority == "act" for one in held):
        return _told_all(_lasting(tool, given, ground, plugin, act=True))
    return _told_late(_observing(tool, given, ground, plugin, reviewer=False))


def _swayed(
    tool: str, given: dict[str, Any], held: list[Open], folders: tuple[str, ...]
) -> str | None:
    """Why a call would tell the reviewer what to find: it audits what is sealed, not arguments."""
    due = next((one for one in held if one.next == 6), None)
    if tool == "SendMessage" and due is not None:
        return (
            "trainwarden: no messages while gate 6 is open: the reviewer ends by itself, and one "
            "that has ended is not asked again. Start another, or run `trainwarden review`."
        )
    if tool not in ("Agent", "Task"):
        return None
    again = bool(given.get("resume")) and due is not None
    asked = str(given.get("subagent_type") or "").split(":")[-1] == REVIEWER.split(":")[-1]
    prompt = str(given.get("prompt") or "")
    if not again and (not asked or _is_plain(prompt, held)):
        if not asked:
            return None
        from trainwarden.guard.skills import other_reviewer

        other = other_reviewer(folders)
        return f"trainwarden: {other}." if other else None
    name = (due or held[0]).session
    return (
        "trainwarden: the reviewer is told which session to audit, and nothing of what to find. "
        f"Start it with the prompt `Audit session {name}.`"
    )


def _is_plain(prompt: str, held: list[Open]) -> bool:
    """Whether a reviewer's prompt names what to audit, and has no other words."""
    for one in held:
        for name in (one.session, one.job):
            prompt = prompt.replace(name, " ")
    words = "".join(sign if sign.isalnum() else " " for sign in prompt.lower()).split()
    known = all(word in _AUDIT or word.isdigit() for word in words)
    return known and len(prompt) <= PROMPT


def runtime_calls(command: str) -> list[list[str]] | None:
    """The runtime's commands in a Bash command, as words; None where there are none."""
    if "trainwarden" not in command:
        return None
    from trainwarden.guard.runtime import is_runtime
    from trainwarden.guard.shell import Odd, parse

    try:
        commands = parse(command)
    except Odd:
        return None
    calls = [one.argv for one in commands if is_runtime(one.words[0].text)]
    return calls or None


def _early(
    tool: str, given: dict[str, Any], ground: Ground, plugin: str, reviewer: bool
) -> str | None:
    """Before gate 1 nothing passes but what is known to read code and config only."""
    if tool in PLANNING:
        return None
    if tool == "Bash":
        from trainwarden.guard import early
        from trainwarden.guard.shell import Odd, parse

        if given.get("run_in_background"):
            return "nothing runs in the background yet"
        try:
            commands = parse(str(given.get("command") or ""))
        except Odd as odd:
            return f"the command has {odd}, so what it reads is not plain"
        return early.refusal(commands, ground, plugin, reviewer)
    if tool == "Read":
        return ground.unseen(str(given.get("file_path") or ""))
    if tool == "LS":
        return ground.unlisted(str(given.get("path") or "."))
    if tool == "Grep":
        return _grep(given, ground)
    if tool == "Glob":
        return _glob(given, ground)
    if tool in ("Skill", "SlashCommand"):
        from trainwarden.guard.skills import foreign

        asked = str(given.get("skill") or given.get("command") or "").split()
        name = asked[0].lstrip("/") if asked else ""
        return foreign(name, plugin, (ground.cwd, ground.project))
    if tool in _WRITING:
        return "nothing is written yet: the input goes to the command itself, with <<'EOF'"
    return f"the tool {tool} may read anything"


def _grep(given: dict[str, Any], ground: Ground) -> str | None:
    globs: list[str] = []
    listed = given.get("glob")
    if listed:
        globs += _split(str(listed))
    kind = given.get("type")
    if kind:
        globs.append(of_type(str(kind)))
    return ground.unsearched(str(given.get("path") or "."), globs)


def _split(globs: str) -> list[str]:
    """A list of globs, apart at blanks and at commas outside of braces, braces spread."""
    found, now, depth = [], "", 0
    for sign in globs + " ":
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign.isspace() or (sign == "," and depth == 0):
            found += spread(now) if now else []
            now = ""
        else:
            now += sign
    return found


def _glob(given: dict[str, Any], ground: Ground) -> str | None:
    pattern = str(given.get("pattern") or "")
    if ".." in pattern:
        return "a glob with .."
    parts = pattern.split("/")
    plain = 0
    while plain < len(parts) - 1 and not any(sign in parts[plain] for sign in "*?[{!"):
        plain += 1
    below = "/".join(parts[:plain])
    base = ground.real(str(given.get("path") or "."))
    base = ("/" + below.lstrip("/")) if pattern[:1] == "/" else f"{base}/{below}".rstrip("/")
    globs = spread("/".join(parts[plain:]))
    if any(ending(glob) == "" for glob in globs):
        if ground.unsearched(base, [], names=True):
            return "a glob is to name one kind of code or config, as in **/*.py"
        return None
    return ground.unsearched(base, globs, names=True)


def _observing(
    tool: str, given: dict[str, Any], ground: Ground, plugin: str, reviewer: bool
) -> str | None:
    """After gate 1 reading is free; under authority observe nothing is changed."""
    if tool in _SHELLS:
        from trainwarden.guard import commands
        from trainwarden.guard.shell import Odd, parse

        try:
            parsed = parse(str(given.get("command") or ""), variables=True)
        except Odd as odd:
            return f"the command has {odd}, so what it does is not plain: type it out, in parts"
        return commands.refusal(parsed, ground, plugin, reviewer)
    if tool in _WRITING:
        return "a reviewer writes nothing" if reviewer else ground.unwritten(_target(given))
    if tool in _STOPPING:
        return f"{tool} stops what runs"
    if tool in _ELSEWHERE or (tool in ("Agent", "Task") and given.get("isolation")):
        return f"{tool} would work in another copy of the project, where nothing is judged"
    if tool in ("PowerShell", "REPL"):
        return f"what {tool} does is not known"
    if tool.startswith("mcp__"):
        return _mcp(tool)
    if reviewer and tool not in READING and tool not in PLANNING:
        return "a reviewer reads with Read, Grep, Glob and read-only Bash"
    return None


def _target(given: dict[str, Any]) -> str:
    return str(given.get("file_path") or given.get("notebook_path") or "")


def _mcp(tool: str) -> str | None:
    """By the words of the tool's own name, after the server's."""
    name = tool.split("__")[-1]
    spaced = "".join("_" + sign.lower() if sign.isupper() else sign for sign in name)
    words = spaced.replace("-", "_").split("_")
    told = _CHANGING - _THINGS if next(filter(None, words), "") in _ASKING else _CHANGING
    if any(word in told for word in words):
        return f"{name} may change something"
    asks = not _ASKING.isdisjoint(words)
    return None if asks else f"{name} is not known by its name to only read"


def _lasting(
    tool: str, given: dict[str, Any], ground: Ground, plugin: str, *, act: bool
) -> str | None:
    """What holds at all times: gates, and in a session of its own the client's settings."""
    if tool in _WRITING:
        path = _target(given)
        if act:
            return ground.unchanged(path)
        kept = ground.is_kept(path)
        return "nothing but the runtime writes below monitoring-logs/" if kept else None
    if tool in _SHELLS:
        from trainwarden.guard import kept as keeping

        return keeping.refusal(str(given.get("command") or ""), ground, plugin, act=act)
    if tool.startswith("mcp__") and _mcp(tool) and _mentions(given, ground):
        return "nothing but the runtime writes below monitoring-logs/"
    return None


def _mentions(data: Any, ground: Ground) -> bool:
    """Whether a text in some data names what is kept, or is a path that leads there."""
    left = [data]
    while left:  # no recursion: what is nested deep enough would end it
        one = left.pop()
        if isinstance(one, (dict, list)):
            left += one.values() if isinstance(one, dict) else one
            continue
        text = str(one)
        if "monitoring-logs" in text or (len(text) < _PATH and ground.is_kept(text)):
            return True
    return False


def _todo(given: dict[str, Any], held: list[Open]) -> str | None:
    """A task named after a step is done when its gate is sealed."""
    todos = given.get("todos")
    first = min(held, key=lambda one: one.next)
    for item in todos if isinstance(todos, list) else []:
        if not isinstance(item, dict) or item.get("status") != "completed":
            continue
        words = str(item.get("content") or "").replace(":", " ").split()
        named = len(words) > 1 and words[0].lower() == "step" and words[1] in _STEPS
        if named and int(words[1]) >= first.next:
            return (
                f"trainwarden: step {words[1]} is done when gate {words[1]} is sealed; "
                f"session {first.session} is at step {first.next}: `{first.command}`."
            )
    return None


def _told_early(reason: str | None, session: Open) -> str | None:
    if reason is None:
        return None
    return (
        f"trainwarden: {reason}. Gate 1 of session {session.session} is not sealed: predict before "
        "looking. Until then only config and code of the project are read (Read with a file; Grep "
        "and Glob with *.py), and the runtime runs: `trainwarden step 1` says how, "
        "`trainwarden predict <<'EOF'` seals. "
        "To give up: `trainwarden abandon --why '…'`."
    )


def _told_late(reason: str | None) -> str | None:
    if reason is None:
        return None
    return (
        f"trainwarden: {reason}. This session's authority is observe: reading is free, nothing is "
        "changed. Read with plain commands (cat, tail, grep, rg, jq, ps, nvidia-smi, Read), "
        "propose any change to the user, or end with `trainwarden abandon --why '…'`."
    )


def _told_reviewer(reason: str | None) -> str | None:
    if reason is None:
        return None
    return (
        f"trainwarden: {reason}. A reviewer only reads: Read, Grep, Glob, plain reading commands, "
        "`trainwarden review --material`, show, reread, verify, read, probe, step, status."
    )


def _told_all(reason: str | None) -> str | None:
    if reason is None:
        return None
    return (
        f"trainwarden: {reason}. A session is open in this project; gates are written by "
        "`trainwarden` commands alone (`trainwarden status` lists them)."
    )

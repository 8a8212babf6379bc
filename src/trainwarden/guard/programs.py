"""Programs given to sed and awk as words: which ones only print."""

from __future__ import annotations


def sed(argv: list[str]) -> list[str] | None:
    """The files that a harmless sed reads; None where it may write, run or read more."""
    scripts, files, at = [], [], 1
    while at < len(argv):
        word = argv[at]
        at += 1
        if word in ("-e", "-ne", "--expression"):
            scripts.append(argv[at] if at < len(argv) else "?")
            at += 1
        elif word in ("-n", "-E", "-r", "-s", "-u", "--quiet", "--silent", "-nE", "-nr", "-En"):
            continue
        elif word[:1] == "-" and word != "-":
            return None
        else:
            files.append(word)
    if not scripts:
        scripts, files = files[:1], files[1:]
    return files if scripts and all(_prints(script) for script in scripts) else None


def _prints(script: str) -> bool:
    """Whether a sed script has only addresses with p, d, q, =, and s without w and e."""
    at, end = 0, len(script)
    while at < end:
        while at < end and script[at] in " ;\n\t":
            at += 1
        if at == end:
            return True
        at = _address(script, at)
        if at < 0 or at >= end:
            return False
        if script[at] in "pdq=":
            at += 1
        elif script[at] == "s":
            at = _substitution(script, at + 1)
            if at < 0:
                return False
        else:
            return False
        if at < end and script[at] not in ";\n":
            return False
    return True


def _address(script: str, at: int) -> int:
    """The position after an address (`3`, `$`, `/x/`, `2,5`), blanks and !; -1 for another."""
    for part in (0, 1):
        if script[at : at + 1] == "/":
            at = _pattern(script, at + 1, "/")
            if at < 0:
                return -1
        elif script[at : at + 1] == "$":
            at += 1
        else:
            while script[at : at + 1] and script[at] in "0123456789~+":
                at += 1
        if part == 0:
            if script[at : at + 1] != ",":
                break
            at += 1
    while script[at : at + 1] and script[at] in " !":
        at += 1
    return at


def _pattern(script: str, at: int, mark: str) -> int:
    """The position after a pattern's end mark; -1 where sed may see another end than this."""
    start = at
    while at < len(script):
        if script[at] == "\\":
            at += 2
            continue
        if script[at] == "\n":
            return -1
        if script[at] == mark:
            inner = script[start:at]
            odd = inner.count("[") > inner.count("]") or "[]" in inner or "[^]" in inner
            return -1 if odd else at + 1
        at += 1
    return -1


def _substitution(script: str, at: int) -> int:
    mark = script[at : at + 1]
    if mark not in ("/", "|", "#", ",", ":", "@"):
        return -1
    at = _pattern(script, at + 1, mark)
    at = _pattern(script, at, mark) if at >= 0 else at
    if at < 0:
        return -1
    while at < len(script) and script[at] in "gpiI0123456789":
        at += 1
    return at


def awk(argv: list[str]) -> bool:
    """Whether an awk call only prints to its standard output."""
    at = 1
    while at < len(argv) and argv[at][:1] == "-" and argv[at] != "-":
        word = argv[at]
        if word in ("-F", "-v"):
            at += 2
        elif word == "--":
            at += 1
            break
        elif word[:2] in ("-F", "-v"):
            at += 1
        else:
            return False
    if at >= len(argv):
        return False
    program = argv[at].replace("||", "")
    if any(word in program for word in ("system", "getline", "@", "\\\n")):
        return False
    # After print, `>` and `|` write; a comparison or an alternative may stand before any print.
    last = max(program.rfind(">"), program.rfind("|"))
    return "print" not in program[: max(last, 0)]

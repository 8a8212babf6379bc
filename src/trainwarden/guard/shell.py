"""A Bash command as the simple commands that it consists of, where that is plain from its text.

Whatever a shell would have to work out (substitution, variables, subshells, jobs in the background)
raises `Odd`: only what is understood wholly, in bash and in zsh, can be judged.
"""

from __future__ import annotations

_OPERATORS = ("<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">")
LONGEST = 2**17
"""Characters that are judged: what is longer no system starts as one command."""
MOST_WORDS = 4_000
"""Words that are judged: with more of them judging could take as long as the client waits."""
_AFTER_DOLLAR = " \t\n|;&"
_AFTER_DOLLAR_QUOTED = " \t\n\"'|)/."


class Odd(ValueError):
    """A command whose meaning is not plain from its text; says what makes it so."""


class Word:
    """A word without its quotes, and which expansions the shell still makes in it."""

    __slots__ = ("marks", "text")

    def __init__(self, text: str, marks: str) -> None:
        self.text = text
        self.marks = marks
        """Of `*` a glob, `~` a home, `{` a brace, `$` a variable, `?` the exit code, `'` quotes."""


class Redirect:
    """A redirection: the descriptor ("" where none is named), the operator, what it names."""

    __slots__ = ("fd", "operator", "word")

    def __init__(self, fd: str, operator: str, word: Word) -> None:
        self.fd = fd
        self.operator = operator
        self.word = word

    def is_harmless(self) -> bool:
        """Whether it copies or closes a descriptor, takes text, or throws output away."""
        text = self.word.text
        if self.operator in ("<<", "<<<"):
            return True
        if self.operator in (">&", "<&") and (text.isdigit() or text == "-"):
            return True
        return self.operator != "<" and text == "/dev/null"


class Simple:
    """A simple command, and the operator that joins it to the one before it."""

    __slots__ = ("joint", "redirects", "words")

    def __init__(self, joint: str) -> None:
        self.joint = joint
        """`""` for the first, else `&&`, `||`, `;` or `|`."""
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []

    @property
    def argv(self) -> list[str]:
        """The words as the command gets them, where none has an expansion."""
        return [word.text for word in self.words]


def parse(text: str, *, variables: bool = False) -> list[Simple]:
    """The simple commands of a command line; with `variables`, `$NAME` is a mark. Raises Odd."""
    if "\0" in text:
        raise Odd("a NUL character")
    if len(text) > LONGEST:
        raise Odd(f"more than {LONGEST} characters")
    return _Reader(text, variables).read()


class _Reader:
    """One pass over the text, a character at a time."""

    def __init__(self, text: str, variables: bool) -> None:
        self.text = text
        self.variables = variables
        self.end = len(text)
        self.at = 0
        self.done: list[Simple] = []
        self.now = Simple("")
        self.letters: list[str] | None = None
        self.marks = ""
        self.words = 0
        self.redirect: tuple[str, str] | None = None
        self.documents: list[tuple[Redirect, bool]] = []

    def read(self) -> list[Simple]:
        text = self.text
        while self.at < self.end:
            sign = text[self.at]
            reader = _READERS.get(sign)
            if reader is not None:
                reader(self)
            elif sign.isprintable():
                self._add(sign)
                self.at += 1
            else:
                raise Odd("a control character or an unusual blank")
        self._end_command("")
        if self.documents:
            raise Odd("a here-document without its end")
        return self.done

    def _add(self, text: str, mark: str = "") -> None:
        if self.letters is None:
            self.letters = []
        self.letters.append(text)
        if mark and mark not in self.marks:
            self.marks += mark

    def _end_word(self) -> None:
        if self.letters is None:
            return
        text, marks = "".join(self.letters), self.marks
        if text in ("[", "]"):
            marks = ""
        self.letters, self.marks = None, ""
        if not marks and text[:1] == "=" and text not in ("=", "=="):
            raise Odd("a word that begins with =")
        self.words += 1
        if self.words > MOST_WORDS:
            raise Odd(f"more than {MOST_WORDS} words")
        word = Word(text, marks)
        if self.redirect is None:
            self.now.words.append(word)
            return
        fd, operator = self.redirect
        self.redirect = None
        if operator not in ("<<", "<<-"):
            self.now.redirects.append(Redirect(fd, operator, word))
            return
        if not text.replace("_", "a").isalnum() or not text.isascii():
            raise Odd("an unusual end mark of a here-document")
        document = Redirect(fd, "<<", word)
        self.now.redirects.append(document)
        self.documents.append((document, operator == "<<-"))

    def _end_command(self, joint: str) -> None:
        """`joint` is what follows, "" at the end."""
        self._end_word()
        if self.redirect is not None:
            raise Odd("a redirection that names nothing")
        now = self.now
        if now.words:
            self.done.append(now)
            self.now = Simple(joint)
        elif now.redirects:
            raise Odd("a redirection without a command")
        elif joint or now.joint not in ("", ";"):
            raise Odd("an operator without a command")

    def _blank(self) -> None:
        self._end_word()
        self.at += 1

    def _newline(self) -> None:
        self._end_word()
        if self.redirect is not None:
            raise Odd("a redirection that names nothing")
        if self.now.words or self.now.redirects:
            self._end_command(";")
        self.at += 1
        documents, self.documents = self.documents, []
        for document, strips in documents:
            self._document(document, strips)

    def _document(self, document: Redirect, strips: bool) -> None:
        lines, mark = [], document.word.text
        while self.at < self.end:
            stop = self.text.find("\n", self.at)
            stop = self.end if stop < 0 else stop
            line = self.text[self.at : stop]
            self.at = stop + 1
            if strips:
                line = line.lstrip("\t")
            if line == mark:
                break
            lines.append(line)
        else:
            raise Odd("a here-document without its end")
        body = "\n".join(lines)
        if "'" not in document.word.marks and any(sign in body for sign in "$`\\"):
            raise Odd("a here-document with expansions: quote its end mark, <<'EOF'")
        document.word = Word(body, "'")

    def _comment(self) -> None:
        if self.letters is not None:
            self._add("#")
            self.at += 1
            return
        stop = self.text.find("\n", self.at)
        self.at = self.end if stop < 0 else stop

    def _single(self) -> None:
        stop = self.text.find("'", self.at + 1)
        if stop < 0:
            raise Odd("a quote without its end")
        self._quoted(self.text[self.at + 1 : stop])
        self.at = stop + 1

    def _quoted(self, inner: str) -> None:
        if not inner.isprintable() and not inner.replace("\n", "").replace("\t", "").isprintable():
            raise Odd("a control character or an unusual blank")
        if self.documents and "\n" in inner:
            raise Odd("a quoted newline after a here-document's start")
        self._add(inner, "'")

    def _double(self) -> None:
        text, at, inner = self.text, self.at + 1, []
        while True:
            sign = text[at : at + 1]
            if not sign:
                raise Odd("a quote without its end")
            if sign == '"':
                break
            if sign == "`":
                raise Odd("a command substitution")
            after = text[at + 1 : at + 2]
            if sign == "\\" and after and after in '$`"\\':
                sign = after
                at += 1
            elif sign == "\\" and after == "\n":
                sign = ""
                at += 1
                if self.documents:
                    raise Odd("a quoted newline after a here-document's start")
            elif sign == "$":
                if after == "?":
                    self._add("", "?")
                elif self.variables and _starts_name(after):
                    self._subscripts(at + 1)
                    self._add("", "$")
                elif after not in _AFTER_DOLLAR_QUOTED:
                    raise Odd(_dollar(after))
            inner.append(sign)
            at += 1
        self._quoted("".join(inner))
        self.at = at + 1

    def _backslash(self) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if after == "\n":
            if self.documents:
                raise Odd("a quoted newline after a here-document's start")
        elif not after.isprintable() or not after:
            raise Odd("a backslash before nothing or a control character")
        else:
            self._add(after, "'")
        self.at += 2

    def _subscripts(self, at: int) -> None:
        """Refuse a subscript after a variable's name: zsh runs what is in it."""
        while _starts_name(self.text[at : at + 1]) or self.text[at : at + 1].isdigit():
            at += 1
        if self.text[at : at + 1] == "[":
            raise Odd("a subscript")

    def _dollar(self) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if after == "?":
            self._add("0", "?")
            self.at += 2
        elif not after or after in _AFTER_DOLLAR or (self.variables and _starts_name(after)):
            self._subscripts(self.at + 1)
            self._add("$", "$" if _starts_name(after) else "")
            self.at += 1
        else:
            raise Odd(_dollar(after))

    def _special(self) -> None:
        """A sign that the shell may expand."""
        sign = self.text[self.at]
        if sign == "~":
            starts = self.letters is None or self.letters[-1][-1:] in ("=", ":", "")
            self._add(sign, "~" if starts else "")
        else:
            self._add(sign, "{" if sign in "{}" else "*")
        self.at += 1

    def _refused(self) -> None:
        raise Odd("a command substitution" if self.text[self.at] == "`" else "a parenthesis")

    def _joint(self) -> None:
        text, at = self.text, self.at
        pair = text[at : at + 2]
        if pair in ("&&", "||"):
            self.at += 2
            self._end_command(pair)
        elif pair == "|&":
            self.at += 2
            self._end_command("|")
        elif text[at] == "|":
            self.at += 1
            self._end_command("|")
        elif pair in (";;", ";&", ";|"):
            raise Odd(f"the operator {pair}")
        elif text[at] == ";":
            self.at += 1
            self._end_command(";")
        elif pair == "&>":
            self._end_word()
            self.at += 3 if text[at : at + 3] == "&>>" else 2
            self._expect("&", "&>")
        else:
            raise Odd("a command in the background")

    def _arrow(self) -> None:
        text, at = self.text, self.at
        if text[at + 1 : at + 2] == "(":
            raise Odd("a process substitution")
        fd = "".join(self.letters or [])
        if fd.isdigit() and fd.isascii() and not self.marks:
            self.letters = None
        else:
            if "{" in self.marks:
                raise Odd("a brace before a redirection")
            self._end_word()
            fd = ""
        operator = next(known for known in _OPERATORS if text.startswith(known, at))
        if operator == "<>":
            raise Odd("the operator <>")
        self.at += len(operator)
        self._expect(fd, operator)

    def _expect(self, fd: str, operator: str) -> None:
        if self.redirect is not None:
            raise Odd("a redirection that names nothing")
        if self.text[self.at : self.at + 1] in ("!", "(", "&", ">", "<"):
            raise Odd("an unusual redirection")
        self.redirect = (fd, operator)


def _starts_name(sign: str) -> bool:
    return sign == "_" or (sign.isalpha() and sign.isascii())


def _dollar(after: str) -> str:
    if after == "(":
        return "a command substitution"
    return "a special quote" if after in "'\"" else "a variable"


_READERS = {
    " ": _Reader._blank,
    "\t": _Reader._blank,
    "\n": _Reader._newline,
    "#": _Reader._comment,
    "'": _Reader._single,
    '"': _Reader._double,
    "\\": _Reader._backslash,
    "$": _Reader._dollar,
    "`": _Reader._refused,
    "(": _Reader._refused,
    ")": _Reader._refused,
    "*": _Reader._special,
    "?": _Reader._special,
    "[": _Reader._special,
    "~": _Reader._special,
    "{": _Reader._special,
    "}": _Reader._special,
    "&": _Reader._joint,
    "|": _Reader._joint,
    ";": _Reader._joint,
    "<": _Reader._arrow,
    ">": _Reader._arrow,
}

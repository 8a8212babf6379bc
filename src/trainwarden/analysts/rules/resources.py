"""Step 5 by rules: every GPU, the process tree, host, disks, checkpoints, kernel log, gaps."""

from __future__ import annotations

from trainwarden.analysts.rules.words import Writer, cited
from trainwarden.diagnosis.base import as_number
from trainwarden.procedure.roles import Briefing
from trainwarden.records.observation import Observation


def resources(briefing: Briefing) -> str:
    """What the machine tells for the run; each number with its citation."""
    writer = Writer(briefing)
    _gpus(writer)
    _processes(writer)
    _host(writer)
    _storage(writer)
    _kernel(writer)
    _gaps(writer)
    concerns = [f for f in writer.loud if any(_of_machine(writer, i) for i in f.observations)]
    for finding in concerns:
        writer.say(f"This speaks against the run going on well: {finding.kind} [{finding.id}].")
    if not concerns:
        writer.say("Nothing in these readings speaks against the run going on.")
    return writer.text


def _of_machine(writer: Writer, name: str) -> bool:
    seen = writer.briefing.observations.get(name)
    return seen is not None and seen.quantity.startswith(
        ("gpu.", "process.", "host.", "disk.", "checkpoint.", "kernel.")
    )


def _phrase(before: str, seen: Observation | None, after: str = "") -> str:
    return f"{before}{cited(seen)}{after}" if seen is not None else ""


def _gpus(writer: Writer) -> None:
    subjects = list(
        dict.fromkeys(
            seen.subject
            for seen in writer.briefing.observations.values()
            if seen.quantity.startswith("gpu.") and seen.subject
        )
    )
    report = next((r for r in writer.briefing.reports if r.source == "gpu"), None)
    unread = writer.one("source.gpu")
    if not subjects:
        where = f" [{unread.id}]" if unread is not None else ""
        count = writer.one("gpu.count")
        where = where or (f" [{count.id}]" if count is not None else "")
        if report is not None and report.status in ("failed", "timed_out"):
            writer.say(
                f"The GPUs of this machine could not be read, so nothing is known of them{where}."
            )
        else:
            writer.say(f"There is no NVIDIA GPU to read on this machine{where}.")
        return
    for subject in subjects:
        _gpu(writer, str(subject))


def _gpu(writer: Writer, subject: str) -> None:
    def one(name: str) -> Observation | None:
        return writer.one(f"gpu.{name}", subject=subject)

    readable = one("readable")
    if readable is not None and readable.value is False:
        writer.say(f"{subject} cannot be read [{readable.id}].")
        return
    used, total = one("memory_used"), one("memory_total")
    memory = _phrase("holds ", used, _phrase(" of ", total)) if used is not None else ""
    parts = [
        _phrase("has a power share of ", one("power_share"), " between idle and its limit"),
        _phrase("a utilisation of ", one("utilization")),
        memory,
        _phrase("is at ", one("temperature")),
    ]
    said = ", ".join(part for part in parts if part)
    fallback = readable or used or one("name") or one("uuid")
    if said:
        writer.say(f"{subject} {said}.", f"{subject} was read [{fallback.id}]." if fallback else "")
    elif fallback is not None:
        writer.say(f"{subject} was read but tells no load [{fallback.id}].")
    held = one("throttle")
    if held is not None and str(held.value) not in ("none", "gpu_idle"):
        writer.say(f"Its clocks are held down by {str(held.value).replace('_', ' ')} [{held.id}].")
    elif held is not None:
        writer.say(f"Nothing holds its clocks down [{held.id}].")
    errors = one("ecc_uncorrected")
    if errors is not None:
        writer.say(f"It counts {cited(errors, '')} uncorrected memory errors.")
    strangers = one("strangers")
    if strangers is not None and as_number(strangers.value):
        writer.say(f"Processes of others use it as well: {cited(strangers, '')}.")


def _processes(writer: Writer) -> None:
    alive = writer.one("process.alive")
    if alive is None:
        unread = writer.one("source.process")
        where = f" [{unread.id}]" if unread is not None else ""
        writer.say(f"No process of the job is known on this machine{where}.")
        return
    if alive.value is not True:
        how = writer.one("process.exit", None)
        ended = f", exit {cited(how, '')}" if how is not None else ""
        writer.say(
            f"No process of the job lives any more [{alive.id}]{ended}.",
            f"No process of the job lives any more [{alive.id}].",
        )
        return
    count, rss = writer.one("process.count"), writer.one("process.rss", subject="job")
    parts = [
        _phrase("counts ", count, " processes"),
        _phrase("uses ", writer.one("process.cpu", subject="job"), " cores"),
        _phrase("holds ", rss, " of memory"),
    ]
    said = ", ".join(part for part in parts if part)
    writer.say(
        f"The job lives [{alive.id}]: its tree {said or 'was read'}.",
        f"The job lives [{alive.id}].",
    )
    growth = writer.one("process.rss", "growth") or writer.one("process.rss_growth", None)
    rate = as_number(growth.value) if growth is not None else None
    available = writer.one("host.memory_available")
    left = as_number(available.value) if available is not None else None
    if growth is not None and rate is not None and available is not None and left:
        if rate > 0:
            much = (
                "for days"
                if left / rate > 172_800
                else "for hours"
                if left / rate > 7200
                else "for less than two hours"
            )
            writer.say(
                f"Its memory grows by {cited(growth, 'bytes')} a second, so what the host has left "
                f"lasts {much} at this pace [{available.id}].",
                f"Its memory grows [{growth.id}].",
            )
        else:
            writer.say(f"Its memory does not grow [{growth.id}].")
    odd = [
        s
        for s in writer.find("process.state")
        if s.value in ("stopped", "zombie", "disk-sleep", "dead")
    ]
    if odd:
        writer.say(
            "Not running as usual: "
            + ", ".join(f"{s.subject} is {s.value} [{s.id}]" for s in odd[:6])
            + "."
        )
    launcher = writer.one("process.launcher_alive")
    if launcher is not None:
        state = "lives" if launcher.value is True else "is gone"
        writer.say(f"Its launcher {state} [{launcher.id}].")


def _host(writer: Writer) -> None:
    free, total = writer.one("host.memory_available"), writer.one("host.memory_total")
    if free is not None:
        writer.say(
            f"The host has {cited(free)} memory available{_phrase(' of ', total)}.",
            f"The host's memory was read [{free.id}].",
        )
    load, cores = writer.one("host.load1"), writer.one("host.cores")
    if load is not None:
        writer.say(f"Its load a core is {cited(load, '')}{_phrase(' on ', cores, ' cores')}.")
    swap = writer.one("host.swap_used")
    if swap is not None and as_number(swap.value):
        writer.say(f"It has swapped out {cited(swap)}.")
    shm = writer.one("host.shm_free")
    if shm is not None:
        writer.say(f"Shared memory has {cited(shm)} free.")


def _storage(writer: Writer) -> None:
    for free in writer.find("disk.free")[:8]:
        total = writer.one("disk.total", subject=free.subject)
        of = f" of {cited(total, 'bytes')}" if total is not None else ""
        until = writer.one("disk.full_in", None, free.subject)
        lasts = (
            f", and at its present growth it is full in {cited(until)}" if until is not None else ""
        )
        writer.say(
            f"The disk of the job's folder has {cited(free, 'bytes')} free{of}{lasts}.",
            f"The disk of the job's folder was read [{free.id}].",
        )
    count, age = writer.one("checkpoint.count"), writer.one("checkpoint.age")
    if count is not None:
        newest = f"; the newest is {cited(age)} old" if age is not None else ""
        usual = writer.one("checkpoint.interval", None)
        often = f", where {cited(usual)} between two is usual" if usual is not None else ""
        writer.say(
            f"There are {cited(count, '')} checkpoints{newest}{often}.",
            f"The checkpoints were counted [{count.id}].",
        )
    broken = writer.one("checkpoint.incomplete")
    if broken is not None:
        said = (
            f"{cited(broken, '')} of them look incomplete"
            if as_number(broken.value)
            else (f"None of them looks incomplete [{broken.id}]")
        )
        writer.say(said + ".")


def _kernel(writer: Writer) -> None:
    readable = writer.one("kernel.readable")
    if readable is not None and readable.value is not True:
        writer.say(
            f"The kernel log could not be read [{readable.id}], so Xid events and kills for want "
            "of memory are not excluded."
        )
        return
    told = [
        seen
        for seen in writer.briefing.observations.values()
        if seen.quantity.startswith("kernel.")
        and seen.quantity != "kernel.readable"
        and seen.stat == "last"
    ]
    if told:
        names = ", ".join(f"{seen.quantity.partition('.')[2]} [{seen.id}]" for seen in told[:8])
        writer.say(f"The kernel log tells of: {names}.")
    elif readable is not None:
        writer.say(
            f"The kernel log was read and tells of no event that matters here [{readable.id}]."
        )


def _gaps(writer: Writer) -> None:
    for report in writer.briefing.reports:
        if report.status == "ok":
            continue
        seen = writer.one(f"source.{report.source}")
        where = f" [{seen.id}]" if seen is not None else ""
        state = {
            "absent": "has nothing to read here",
            "partial": "could be read in part only",
            "failed": "could not be read",
            "timed_out": "did not answer in time",
        }[report.status]
        writer.say(f"The source {report.source} {state}{where}.")

"""`manage.py demo`: one job from the command line to its record, on a stage of its own; or a whole fleet."""

from __future__ import annotations

import io
import textwrap
from argparse import SUPPRESS, ArgumentParser
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.demo import data, filling, kept, sample, stage
from dispatch.demo.interrupts import interrupts
from dispatch.demo.telling import REAL_PROVIDER, Teller, told_image, told_record
from pidispatch_site import log
from pidispatch_site.errors import OperationalError
from runs.demo_image import ensure_demo_image
from runs.engine import Engine
from runs.files import RecordFiles
from runs.process import NOT_ISOLATED
from runs.protocols import EngineSilentError

_WIDTH = 78


class Command(BaseCommand):
    help = "See one job travel through queue, container and record, without a provider key."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--keep", action="store_true", help="leave worker and console running")
        parser.add_argument(
            "--data", action="store_true", help="a fleet at work and weeks of invented runs, in the console"
        )
        # What `--data` has the first of its hosts do.
        parser.add_argument("--fill", metavar="INSTANT", type=datetime.fromisoformat, help=SUPPRESS)
        parser.add_argument("--end", metavar="FOLDER", help="end a demo that was kept")

    def handle(self, *args: Any, **options: Any) -> None:
        # Events are for the log of a worker; here a person watches.
        log.configure(log.EventLog(io.StringIO()))
        if options["end"]:
            self.stdout.write(kept.end(options["end"]))
            return
        if options["fill"]:
            self.stdout.write(f"{filling.fill(options['fill'])} runs")
            return
        interrupts.listen()
        teller = Teller(self._write, strong=self.style.MIGRATE_HEADING)
        try:
            if options["data"]:
                self._show_data(teller)
                return
            self._demonstrate(teller, keep=options["keep"])
        except KeyboardInterrupt as interrupt:
            raise OperationalError("The demo was interrupted; nothing of it is left running.") from interrupt
        teller.show(REAL_PROVIDER)

    def _demonstrate(self, teller: Teller, *, keep: bool) -> None:
        teller.show("One job, from the command line to its record; a scripted agent, no provider key.")
        backend, image = self._backend(teller)
        environment = settings.PIDISPATCH_ENVIRONMENT
        with stage.set_up(environment, backend=backend, image=image, warn=self.stderr.write) as here:
            _play(here, teller)
            if keep:
                _keep(here, here, teller)
                _tell_what_can_be_done(here, teller)
        if not keep:
            teller.show("\nNothing is left running. `make demo KEEP=1` keeps it and opens the console.")
            if image:
                teller.show(told_image(image))

    def _show_data(self, teller: Teller) -> None:
        teller.show("A fleet at work and its past, in the console; scripted agents, no provider key.")
        backend, image = self._backend(teller)
        environment = settings.PIDISPATCH_ENVIRONMENT
        with stage.set_up(environment, backend=backend, image=image, warn=self.stderr.write) as here:
            first = data.play(here, teller)
            _keep(here, first, teller)
            teller.step("Workers, console and Valkey stay")
            teller.say(f"Any command: PI_ENV_FILE={first.variables} {' '.join(first.command())} …")
            _tell_the_end(here, teller)

    def _backend(self, teller: Teller) -> tuple[str, str | None]:
        """Choose a container where an engine and an image are to be had, else say loudly what it is not."""
        teller.step("The container's image: a static busybox and the scripted agent, some 2 MB")
        engine = Engine(environment=settings.PIDISPATCH_ENVIRONMENT)
        try:
            engine.ping()
            image = ensure_demo_image(engine)
        except EngineSilentError:
            return _without_isolation(teller, "No container engine answers to this account.")
        finally:
            engine.close()
        if image is None:
            return _without_isolation(teller, "There is no image to be had: no static busybox, no registry.")
        teller.say(image)
        return "docker", image

    def _write(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _without_isolation(teller: Teller, why: str) -> tuple[str, None]:
    mark = "!" * _WIDTH
    teller.show("\n".join((mark, *textwrap.wrap(f"{why} {NOT_ISOLATED}", _WIDTH), mark)))
    return "process", None


def _play(here: stage.Stage, teller: Teller) -> None:
    teller.step("The worker, and a Valkey server of its own (VALKEY_URL=embedded)")
    teller.say("$ manage.py runworker")
    worker = here.start("worker", "runworker")
    sample.make_repository(here.repository, here.environment)
    here.until_logged("worker", "worker_started", worker)
    teller.say("It is up and waits for jobs.")
    teller.step("A job on a sample repository")
    teller.say(f"$ manage.py run {here.repository} --wait \\\n      --task {sample.TASK!r}")
    code = here.show("run", str(here.repository), "--task", sample.TASK, "--wait")
    if code != 0:
        said = here.log("worker").read_text(errors="replace")
        raise OperationalError(f"The job did not complete (exit code {code}). The worker said:\n{said}")
    teller.step("What the job changed: git diff")
    teller.show(sample.read_diff(here.repository, here.environment).rstrip())
    teller.step("Its record: one line of JSON, and a row in the console")
    for _, record in RecordFiles(here.logs).scan():
        teller.say(told_record(record, here.logs))


def _keep(here: stage.Stage, host: stage.Stage, teller: Teller) -> None:
    """Serve the console of this host of the stage, and let everything stay."""
    teller.step("The console, on this machine only")
    web = host.start("web", "web", "--bind", "127.0.0.1:0")
    here.until_logged("web", "/admin/", web)
    address = kept.web_address(host)
    link = host.call("loginlink").strip()
    interrupts.disregard()
    kept.remember(here)
    teller.say(f"{link}\n(logs you in once, within ten minutes; afterwards {address}/admin/)")
    teller.say(f"Another link:\n  PI_ENV_FILE={host.variables} {' '.join(host.command('loginlink'))}")


def _tell_what_can_be_done(here: stage.Stage, teller: Teller) -> None:
    manage = f"PI_ENV_FILE={here.variables} {' '.join(here.command())}"
    teller.step("Worker, console and Valkey stay")
    teller.say(f'Another job:\n  {manage} run --force --wait {here.repository} --task "…"')
    teller.say(f"Stop taking jobs, and look:\n  {manage} pause\n  {manage} status")
    _tell_the_end(here, teller)


def _tell_the_end(here: stage.Stage, teller: Teller) -> None:
    teller.say(f"End it all:\n  {' '.join(here.command('demo', '--end', str(here.folder)))}")

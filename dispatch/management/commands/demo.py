"""`manage.py demo`: one job from the command line to its record, on a stage of its own."""

from __future__ import annotations

import signal
import subprocess
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.demo import kept, sample, stage
from dispatch.demo.telling import REAL_PROVIDER, told_record
from pidispatch_site.errors import OperationalError
from runs.demo_image import ensure_demo_image
from runs.engine import Engine
from runs.files import RecordFiles
from runs.process import NOT_ISOLATED
from runs.protocols import EngineSilentError


class Command(BaseCommand):
    help = "See one job travel through queue, container and record, without a provider key."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--keep", action="store_true", help="leave worker and admin running")
        parser.add_argument("--end", metavar="FOLDER", help="end a demo that was kept")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["end"]:
            self.stdout.write(kept.end(options["end"]))
            return
        # A stopped demo must clean up after itself as well.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        backend, image = self._backend()
        here = stage.set_up(settings.PIDISPATCH_ENVIRONMENT, backend=backend, image=image)
        started: list[subprocess.Popen[bytes]] = []
        stays = False
        try:
            self._play(here, started)
            if options["keep"]:
                self._keep(here, started)
                stays = True
        except KeyboardInterrupt as interrupt:
            raise OperationalError("The demo was interrupted; nothing of it is left running.") from interrupt
        finally:
            if not stays:
                for process in reversed(started):
                    stage.end_process(process)
                stage.tear_down(here, warn=self.stderr.write)
        if not stays:
            self.stdout.write("\nNothing was left running. `make demo KEEP=1` keeps it and opens the admin.")
        self.stdout.write(REAL_PROVIDER)

    def _backend(self) -> tuple[str, str | None]:
        """Choose a container where an engine and an image are to be had, else say loudly what it is not."""
        engine = Engine(environment=settings.PIDISPATCH_ENVIRONMENT)
        try:
            engine.ping()
            self._say("Making the demo's image (a static busybox and the scripted agent, some 2 MB)")
            image = ensure_demo_image(engine)
        except EngineSilentError:
            return self._without_isolation("No container engine answers.")
        finally:
            engine.close()
        if image is None:
            return self._without_isolation("There is no image to be had: no static busybox, no registry.")
        return "docker", image

    def _without_isolation(self, why: str) -> tuple[str, None]:
        mark = "!" * 78
        self.stdout.write(f"{mark}\n{why} {NOT_ISOLATED}\n{mark}")
        return "process", None

    def _play(self, here: stage.Stage, started: list[subprocess.Popen[bytes]]) -> None:
        self._say(f"Making a sample repository in {here.repository}")
        sample.make_repository(here.repository, here.environment)
        self._say("$ manage.py runworker     (with a Valkey server of its own, VALKEY_URL=embedded)")
        worker = here.start("worker", "runworker")
        started.append(worker)
        here.until_logged("worker", "worker_started", worker)
        self._say(f"$ manage.py run {here.repository} --task {sample.TASK!r} --wait")
        code = here.show("run", str(here.repository), "--task", sample.TASK, "--wait")
        if code != 0:
            log = (here.folder / "worker.log").read_text(errors="replace")
            raise OperationalError(f"It did not complete (code {code}). The worker said:\n{log}")
        self._say("What the job changed in the repository (git diff)")
        self.stdout.write(sample.read_diff(here.repository, here.environment))
        self._say("Its record")
        for _, record in RecordFiles(here.logs).scan():
            self.stdout.write(told_record(record, here.logs))

    def _keep(self, here: stage.Stage, started: list[subprocess.Popen[bytes]]) -> None:
        web = here.start("web", "web", "--bind", "127.0.0.1:0")
        started.append(web)
        here.until_logged("web", "/admin/", web)
        address = kept.web_address(here)
        link = here.call("loginlink", "--base-url", address).strip()
        kept.remember(here, [process.pid for process in started])
        self._say(f"The admin, on this machine only: {address}/admin/")
        self.stdout.write(link)
        command = " ".join(here.command("demo", "--end", str(here.folder)))
        self.stdout.write(f"\nWorker, admin and Valkey stay until you end them:\n  {command}")

    def _say(self, text: str) -> None:
        self.stdout.write(f"\n── {text}")
        self.stdout.flush()

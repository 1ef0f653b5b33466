"""The free questions to `runs`: engine clean, image here, provider known, workspace ready (Q 3.4)."""

from __future__ import annotations

from dispatch.rungs import Held, Pass, Taking
from dispatch.worker.context import Context
from runs.outcome import InfraFault, Reason, Refusal
from runs.preflight import Needs, check_image, judge_image


def _engine(context: Context) -> Pass:
    # Before one full listing of this boot a container of an older one may still work in the same folder.
    if not context.host.work.engine_is_clean():
        raise InfraFault(Reason.CONTAINER_NEVER_STARTED, detail="engine-silent")
    return Pass()


def _provider(context: Context) -> Pass | Refusal:
    found = context.host.work.credentials_of(context.effective.provider)
    if isinstance(found, Refusal):
        return found
    context.credentials = found
    return Pass()


def _image(context: Context) -> Pass | Refusal:
    found = check_image(context.host.work.images, context.effective.image, _needs(context, any_uid=None))
    if isinstance(found, Refusal):
        return found
    context.image = found
    return Pass()


def _image_for_user(context: Context) -> Pass | Refusal:
    """Judge the image again once the job's user is known: one that we pass needs an image that takes any."""
    if context.image is None or context.prepared is None:
        raise RuntimeError("the image's user is judged after the image and the workspace are known")
    needs = _needs(context, any_uid=context.prepared.user is not None)
    return judge_image(context.effective.image, context.image, needs) or Pass()


def _needs(context: Context, *, any_uid: bool | None) -> Needs:
    job = context.job
    return Needs(
        kind=job.kind.value,
        commands=job.command is not None,
        replicas=job.replica is not None,
        any_uid=any_uid,
    )


def _workspace(context: Context) -> Held | Refusal:
    job, work = context.job, context.host.work
    prepared = work.prepare(context.claimed.job_id, job)
    if isinstance(prepared, Refusal):
        return prepared
    context.prepared = prepared
    return Held(lambda: work.cleanup(prepared))


ENGINE: Taking[Context] = Taking(name="engine", take=_engine)
IMAGE: Taking[Context] = Taking(name="image", take=_image)
PROVIDER: Taking[Context] = Taking(name="provider", take=_provider)
WORKSPACE: Taking[Context] = Taking(name="workspace", take=_workspace)
IMAGE_FOR_USER: Taking[Context] = Taking(name="image for user", take=_image_for_user)

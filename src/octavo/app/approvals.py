"""Puts approval by a human together; loaded only where somebody has to be asked."""

from __future__ import annotations

import logging

from octavo.config.model import Approval as Options
from octavo.core.approval import Approval, Step, Told
from octavo.core.ports.stores import Opens
from octavo.core.tools import Tools
from octavo.pipeline.audit import Audit
from octavo.pipeline.dispatch import Dispatch
from octavo.pipeline.identity.fold import Identity
from octavo.pipeline.policy.approval.ask import Approving
from octavo.stores.approvals import StoredApprovals
from octavo.tools.builtin.addresses import address

logger = logging.getLogger(__name__)


def approving(
    options: Options, opens: Opens, key: bytes, audit: Audit, tools: Tools, dispatch: Dispatch, identity: Identity
) -> Approving:
    return Approving(
        StoredApprovals(opens, noting(audit)),
        key,
        tools,
        dispatch.canonical,
        seconds=options.expires,
        clients=options.ask == "client",
        address=address,
        known=identity.current,
    )


def noting(audit: Audit) -> Told:
    """Each step of an approval is a record of its own, beside those of the calls: one that cannot be recorded does not
    count."""

    def told(step: Step, approval: Approval, person: str) -> None:
        wanted = approval.wanted
        if step == "asked":
            logger.warning("approval %s waits for a human: octavo approvals show %s", approval.id, approval.id)
        by = {"by": person} if person else {}
        audit.note_now(wanted.who, "approval", step, approval=approval.id, act=wanted.act, rule=wanted.rule, **by)

    return told


def answering(opens: Opens, audit: Audit) -> StoredApprovals:
    """For whoever answers."""
    return StoredApprovals(opens, noting(audit))

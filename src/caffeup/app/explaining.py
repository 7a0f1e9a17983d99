"""``caffeup explain``: from an id to its story."""

from __future__ import annotations

from collections.abc import Sequence

from caffeup.app.session import Session
from caffeup.detect.system import probe_system
from caffeup.diagnose.context import Context
from caffeup.diagnose.explain import explain, proposed
from caffeup.errors import UsageError
from caffeup.facts.tables import Facts
from caffeup.model.explanation import Explanation


def story(session: Session, name: str) -> Explanation:
    """All that is known of this id; ``UsageError`` with those that are perhaps meant."""
    wanted = name.strip().strip("[]").lower()
    found = explain(wanted, session.facts, distribution(session))
    if found is not None:
        return found
    alike = proposed(wanted, session.facts)
    if alike:
        raise UsageError(
            f"There is no finding {name!r}. Perhaps you mean:", commands=tuple(f"caffeup explain {one}" for one in alike)
        )
    raise UsageError(f"There is no finding {name!r}.", advice="All of them:", commands=("caffeup explain",))


def require_known(names: Sequence[str], facts: Facts) -> None:
    """Raise ``UsageError`` for a name that no conflict can have."""
    for name in names:
        if explain(name, facts, Context()) is None:
            alike = proposed(name, facts)
            hint = f" Perhaps you mean {' or '.join(alike)}." if alike else " Its id stands in brackets where it is shown."
            raise UsageError(f"--force {name}: there is no such conflict.{hint}", commands=("caffeup explain",))


def distribution(session: Session) -> Context:
    """The distribution here, for the names of its packages; of this machine's versions nothing."""
    system = probe_system(session.host)
    return Context(distro=system.distro, distro_like=system.distro_like, distro_version=system.distro_version)

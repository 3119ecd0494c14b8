"""The states of a migration and the transitions between them: a table. Sends nothing."""

from __future__ import annotations

from typing import Literal, get_args

from solotable.errors import MigrationNotReady

State = Literal[
    "Created",
    "Copying",
    "CatchingUp",
    "Running",
    "Verified",
    "ReadsSwitched",
    "SwitchingWrites",
    "WritesSwitched",
    "Completed",
    "Stopped",
    "Error",
    "Cancelled",
]
SideName = Literal["source", "target"]
STATES: tuple[State, ...] = get_args(State)

#: The states that may follow each state.
TRANSITIONS: dict[State, frozenset[State]] = {
    "Created": frozenset({"Copying", "Cancelled"}),
    "Copying": frozenset({"Copying", "CatchingUp", "Stopped", "Error", "Cancelled"}),
    "CatchingUp": frozenset({"Running", "Copying", "Stopped", "Error", "Cancelled"}),
    "Running": frozenset({"Verified", "Copying", "Stopped", "Error", "Cancelled"}),
    "Verified": frozenset(
        {"Running", "ReadsSwitched", "SwitchingWrites", "Copying", "Stopped", "Error", "Cancelled"}
    ),
    "ReadsSwitched": frozenset({"Verified", "ReadsSwitched", "SwitchingWrites", "Stopped", "Error"}),
    # Forward to WritesSwitched, back to ReadsSwitched; an undone switch returns to the state before it.
    "SwitchingWrites": frozenset({"Verified", "ReadsSwitched", "WritesSwitched"}),
    "WritesSwitched": frozenset({"SwitchingWrites", "Completed", "Stopped", "Error"}),
    "Completed": frozenset(),
    # They return to the state that they interrupted, or to a new copy.
    "Stopped": frozenset(
        {"Copying", "CatchingUp", "Running", "Verified", "ReadsSwitched", "WritesSwitched", "Cancelled"}
    ),
    "Error": frozenset(
        {"Copying", "CatchingUp", "Running", "Verified", "ReadsSwitched", "WritesSwitched", "Cancelled"}
    ),
    "Cancelled": frozenset(),
}

#: The states in which changes of the source are applied to the target.
FORWARD: frozenset[State] = frozenset({"Copying", "CatchingUp", "Running", "Verified", "ReadsSwitched"})
#: The states in which a worker has nothing to do and never will.
ENDED: frozenset[State] = frozenset({"Completed", "Cancelled"})
#: The states that keep the state which they interrupted.
INTERRUPTED: frozenset[State] = frozenset({"Stopped", "Error"})


def check_transition(name: str, state: State, following: State) -> None:
    """Raise MigrationNotReady if a state may not follow another one."""
    if following in TRANSITIONS[state]:
        return
    allowed = sorted(each for each, after in TRANSITIONS.items() if following in after)
    raise not_ready(
        name, f"is {state} and cannot become {following}; it must be {' or '.join(allowed) or 'new'}"
    )


def check_state(name: str, state: State, allowed: frozenset[State], command: str) -> None:
    """Raise MigrationNotReady if a command may not run in a state."""
    if state not in allowed:
        wanted = " or ".join(each for each in STATES if each in allowed)
        hint = f"; run `solotable migrate diff {name}` first" if _is_before_diff(state, allowed) else ""
        raise not_ready(name, f"is {state}, but {command} needs {wanted}{hint}")


def _is_before_diff(state: State, allowed: frozenset[State]) -> bool:
    """Return whether a comparison without differences leads to a state in which the command may run."""
    return state == "Running" and "Verified" in allowed


def not_ready(name: str, *reasons: str) -> MigrationNotReady:
    """Return the error for a refused command, with what is missing."""
    return MigrationNotReady(f"Migration {name!r} {'; it '.join(reasons)}.", reasons=list(reasons))

"""What the clients will ask for, and when hosts are killed: all of it follows from a seed."""

import random
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice
from typing import Any, Final, TypeAlias

Entry: TypeAlias = dict[str, Any]
"""A request (`method`, `params`), or an act on an earlier one by its number: `repeats`, or `cancels` with a `key`."""

SCRIPT: Final = r"""
rules:
  - name: a worker that sends on
    when: {last: user, user: '"content": "pass (?P<name>[\w-]+) to (?P<target>\w+)"'}
    reply:
      calls:
        - tool: session_task
          arguments: {action: send, sessionId: "${user.target}", message: "plain ${user.name}-passed", kind: task}
  - name: a turn that is likely to be killed
    when: {last: user, user: '"content": "slow |^slow '}
    reply: {text: "Done, slowly.", first_delay_ms: 250}
  - reply: {text: "Done.", first_delay_ms: 5}
"""
LEADS: Final = 4
WORKERS: Final = 8
ACCEPTED_MAX: Final = 80
"""What one host is allowed to accept before it is killed, at most."""
UNPROBED_MAX: Final = 30
"""The same while no turn can end yet."""


class Kind(StrEnum):
    """Where a kill strikes."""

    LOAD = "load"
    SETTLING = "settling"
    """The same right behind a commit that ended a turn: what belongs to it must have been in it."""
    RECOVERY = "recovery"
    """The host that has just begun to make something of what the last kill left."""
    DATABASE = "database"
    """The database server under a host that lives on for a while."""


@dataclass(frozen=True)
class Moment:
    """One kill."""

    kind: Kind
    accepted: int
    """How many requests the host has accepted before."""
    pause_s: float
    """What passes then."""
    probed: bool
    """Whether a turn was asked for and had ended before; the first one waits for the vendors' SDKs."""
    release_first: bool
    """Whether the queues were released before the clients came back."""


CYCLE: Final = (Kind.SETTLING, Kind.LOAD, Kind.RECOVERY, Kind.SETTLING)
CYCLE_WITH_DATABASE: Final = (Kind.SETTLING, Kind.DATABASE, Kind.RECOVERY, Kind.LOAD)


def moments(seed: int, kills: int, *, database: bool) -> list[Moment]:
    """Choose the kills: four of them have every kind, those with a *database* server that too."""
    choose = random.Random(f"{seed} moments")
    found = list[Moment]()
    for kind in islice(cycle(CYCLE_WITH_DATABASE if database else CYCLE), kills):
        probed, pause_s = kind is not Kind.LOAD or choose.random() < 0.5, choose.uniform(0, 0.03)
        accepted = choose.randint(1, ACCEPTED_MAX if probed else UNPROBED_MAX)
        found.append(Moment(kind, accepted, pause_s, probed, release_first=choose.random() < 0.5))
    return found


def mixed(name: str, count: int, leads: list[str], workers: list[str]) -> list[Entry]:
    """Tasks, messages and prompts of the client *name*, some of them repeated, some cancelled; no content twice."""
    choose = random.Random(name)
    entries = list[Entry]()
    for number in range(count):
        key = f"{name}-{number}"
        earlier = [one for one in range(max(0, number - 6), number) if "method" in entries[one]]
        what = choose.choices(("task", "message", "prompt", "repeat", "cancel"), (54, 14, 8, 12, 12))[0]
        sent = [one for one in earlier if entries[one]["method"] == "collaboration.send"]
        if what == "repeat" and earlier:
            entries.append({"repeats": choose.choice(earlier)})
        elif what == "cancel" and sent:
            entries.append({"cancels": choose.choice(sent), "key": key})
        elif what == "prompt":
            entries.append(_prompt(key, choose.choice(leads + workers), choose))
        else:
            entries.append(_send(key, what, leads, workers, choose=choose))
    return entries


def alike(client: int, count: int, source: str, target: str) -> list[Entry]:
    """Messages of one client to one session, every third repeated at once where it was accepted."""
    entries = list[Entry]()
    for number in range(count):
        name = f"{client}-{number}"
        params = {"asSessionId": source, "sessionId": target, "content": f"plain {name}", "idempotencyKey": name}
        entries.append({"method": "collaboration.send", "params": params})
        if number % 3 == 0:
            entries.append({"repeats": len(entries) - 1})
    return entries


def _prompt(key: str, session_id: str, choose: random.Random) -> Entry:
    text = f"{choose.choice(('plain', 'slow'))} {key}"
    return {"method": "session.prompt", "params": {"sessionId": session_id, "text": text, "idempotencyKey": key}}


def _send(key: str, what: str, leads: list[str], workers: list[str], *, choose: random.Random) -> Entry:
    target, passed_to = choose.sample(workers, 2)
    content = {"plain": f"plain {key}", "slow": f"slow {key}", "pass": f"pass {key} to {passed_to}"}
    params: dict[str, object] = {
        "kind": "message" if what == "message" else "task",
        "asSessionId": choose.choice(leads),
        "sessionId": target,
        "content": content[choose.choices(("plain", "slow", "pass"), (5, 3, 3))[0]],
        "idempotencyKey": key,
    }
    if choose.random() < 0.3:
        params["notifyOnCompletion"] = choose.random() < 0.5
    return {"method": "collaboration.send", "params": params}

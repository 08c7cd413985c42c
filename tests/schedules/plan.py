"""What happens in a schedule: drawn from its seed, and from nothing else."""

from dataclasses import dataclass
from random import Random

KEYS = 4
VARIANTS = 3
#: By how often they are drawn.
ACTIONS = {
    "upload": 6,
    "upload_several": 2,
    "upload_twice_at_once": 1,
    "delete": 2,
    "cancel": 2,
    "deliver_again": 1,
    "search": 1,
    "chat": 1,
    "remember": 1,
    "learn": 1,
    "connect": 1,
}
FAULTS = {
    "kill_worker": 4,
    "stop_worker": 1,
    "restart_broker": 2,
    "restart_database": 2,
    "crash_database": 1,
    "cut_connections": 2,
    "slow_embedder": 1,
    "take_embedder": 1,
}
POLICIES = ("skip_if_unchanged", "overwrite", "new_version")
#: How far the site is when the fault comes; after a while it comes anyway.
MOMENTS = ("at_once", "claimed", "staged", "loaded")


@dataclass(frozen=True, slots=True)
class Step:
    """An action or a fault, with what it needs of `key`, `variant`, `policy`; a fault comes while
    the steps behind it are done, at a `moment`."""

    name: str
    key: int = 0
    variant: int = 0
    policy: str = POLICIES[0]
    moment: str = ""

    @property
    def is_fault(self) -> bool:
        return bool(self.moment)

    def __str__(self) -> str:
        return f"{self.name} {self.moment or f'{self.key}.{self.variant} {self.policy}'}"


def schedule(seed: int) -> tuple[Step, ...]:
    """Six to ten actions, with two or three faults among them."""
    random = Random(seed)
    steps = [_action(random, "upload_several")]
    steps += [_action(random, _drawn(random, ACTIONS)) for _ in range(random.randint(5, 9))]
    for _ in range(random.randint(2, 3)):
        place = random.randint(1, len(steps) - 1)
        fault = Step(
            _drawn(random, FAULTS), key=random.randint(0, 1), moment=random.choice(MOMENTS)
        )
        steps.insert(place, fault)
    return tuple(steps)


def _action(random: Random, name: str) -> Step:
    return Step(
        name,
        key=random.randrange(KEYS),
        variant=random.randrange(VARIANTS),
        policy=random.choice(POLICIES),
    )


def _drawn(random: Random, weights: dict[str, int]) -> str:
    return random.choices(list(weights), list(weights.values()))[0]

"""Names that a deployment can use, and what each stands for: a policy, a strategy.

Rules:
- the built-in ones are registered in the same way as anybody else's;
- a name stands for one thing: registering another under it is refused, because nodes that loaded two packages
  in different orders would mean different things by one word;
- what is registered stays for the life of the process. Nodes of a mesh agree only if all of them registered
  the same code before they read the document (decision 0026).
"""

from typing import Generic, TypeVar

NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
NAME_PATTERN = "^[a-z][a-z0-9-]{0,39}$"
LONGEST_NAME = 40

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """kind: what its things are called where a name is refused."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, Thing] = {}

    def register(self, name: str, thing: Thing) -> None:
        """ValueError: no name that a document could have, or it is another's."""
        if not (0 < len(name) <= LONGEST_NAME and name[0].isalpha() and NAME_LETTERS.issuperset(name)):
            raise ValueError(
                f"{name!r} is no name for a {self.kind}: small letters, digits and '-', such as my-own"
            )
        if self._things.get(name, thing) != thing:
            raise ValueError(f"there is a {self.kind} {name!r} already; choose another name")
        self._things[name] = thing

    def remove(self, name: str) -> None:
        """For a session in which something is written and tried again and again."""
        del self._things[name]

    def find(self, name: str) -> Thing | None:
        return self._things.get(name)

    def names(self) -> list[str]:
        return sorted(self._things)

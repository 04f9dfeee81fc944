"""Words that are said often: numbers in messages and journals, words for people."""

from enum import IntEnum


class Word(IntEnum):
    """One of few. Its number never changes."""

    def __str__(self) -> str:
        return self.name.lower()

    def __format__(self, form: str) -> str:
        return format(str(self), form)

"""The journal of a node: one file of records, and the image that they fold to.

    journal = Journal.open(directory, create="initialise")   # or "replace": see `first_start`
    journal.append([Promised(...)])      # written, not flushed
    journal.flush()                      # on the disk; may run in a thread while the loop goes on appending
    journal.compact_if_due()             # now and then; may run in a thread while nobody appends
    journal.close()

`format` has the bytes, `files` the other files of a data directory, `opening` decides what a found journal is
worth, `journal` writes. The argument why is in docs/decisions/0016-journal.md.
"""

from comesh.runtime.journal.format import JournalError, UnknownFormatError, read_journal, records_of
from comesh.runtime.journal.journal import Journal

__all__ = ["Journal", "JournalError", "UnknownFormatError", "read_journal", "records_of"]

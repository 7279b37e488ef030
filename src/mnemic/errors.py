"""Every error mnemic raises on purpose. Each message says what happened and what to do next.

    MnemicError
    ├── ConfigError            a setting is unknown, of the wrong type, or asks for what is not installed
    ├── InvalidInput           the caller's text, time, role or id cannot be accepted (also a ValueError)
    ├── NotFound               no such event, chunk, source or session in this namespace
    ├── Conflict               the same id was recorded before with other content
    ├── StorageError           the database or its file
    │   ├── StorageLocked      another process holds it; try again
    │   ├── StorageFull        no space left
    │   ├── StorageReadOnly    no permission to write
    │   ├── StorageDamaged     what is stored does not verify
    │   ├── SchemaTooNew       written by a newer mnemic
    │   ├── LeaseLost          another worker took over; nothing was written
    │   └── Unreachable        the database server does not answer
    ├── JournalError           the journal in front of the store
    │   ├── WrongKey           the key does not open this journal
    │   └── JournalDamaged     rows are missing or altered
    ├── ModelError             an embedder, re-ranker or language model
    │   ├── ModelMissing       its package, file or key is not there
    │   ├── ModelUnavailable   it does not answer
    │   └── ModelMisbehaved    it answers with something unusable
    └── DeadlineExceeded       stopped because its time was over

`exit_code` is what the command line returns: 1 failure, 2 usage, 3 not found, 4 configuration, 5 storage, 6 model.
"""

from __future__ import annotations


class MnemicError(Exception):
    """Something went wrong in mnemic."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class ConfigError(MnemicError):
    """A setting is wrong."""

    exit_code = 4


class InvalidInput(MnemicError, ValueError):
    """The input cannot be accepted."""

    exit_code = 2


class NotFound(MnemicError, LookupError):
    """There is no such thing in this namespace."""

    exit_code = 3


class Conflict(MnemicError):
    """The same id was recorded before with other content."""


class StorageError(MnemicError):
    """The database failed."""

    exit_code = 5


class StorageLocked(StorageError):
    """Another process holds the database; try again in a moment."""


class StorageFull(StorageError):
    """No space is left on the disk; free some and try again."""


class StorageReadOnly(StorageError):
    """The database cannot be written; check the permissions of its folder."""


class StorageDamaged(StorageError):
    """What is stored does not verify; run `mnemic doctor`."""


class SchemaTooNew(StorageError):
    """The database was written by a newer mnemic; upgrade this one."""


class LeaseLost(StorageError):
    """Another worker took over; nothing was written."""


class Unreachable(StorageError):
    """The database server does not answer."""


class JournalError(MnemicError):
    """The journal failed."""

    exit_code = 5


class WrongKey(JournalError):
    """The key does not open this journal."""


class JournalDamaged(JournalError):
    """Rows of the journal are missing or altered; run `mnemic doctor`."""


class ModelError(MnemicError):
    """A model failed."""

    exit_code = 6


class ModelMissing(ModelError):
    """The model's package, file or key is not there."""

    exit_code = 4


class ModelUnavailable(ModelError):
    """The model does not answer."""


class ModelMisbehaved(ModelError):
    """The model's answer is unusable."""


class DeadlineExceeded(MnemicError):
    """Stopped because its time was over."""

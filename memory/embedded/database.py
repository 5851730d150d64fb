"""The one SQLite file: how it is opened, laid out, shared between processes and kept private."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

WAIT = 5.0
"""Seconds to wait for another process that is writing."""

_LAYOUT = 1
_SCHEMA = """
CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, context TEXT,
    created TEXT NOT NULL, updated TEXT NOT NULL
);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL REFERENCES namespaces ON DELETE CASCADE,
    key TEXT NOT NULL, content TEXT NOT NULL, metadata TEXT NOT NULL, status TEXT NOT NULL, date TEXT,
    learn INTEGER NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL, UNIQUE (namespace, key)
);
-- Passages of documents and the memories drawn from them. `line` is the line of the document they come
-- from, `part` tells several of one line apart; `about`, `value` and `denied` are a memory's topic.
CREATE TABLE items (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, namespace INTEGER NOT NULL,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    kind TEXT NOT NULL, line INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, said TEXT NOT NULL,
    static INTEGER NOT NULL DEFAULT 0, about TEXT NOT NULL DEFAULT '', value TEXT NOT NULL DEFAULT '',
    denied INTEGER NOT NULL DEFAULT 0, latest INTEGER NOT NULL DEFAULT 1, version INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX items_of_document ON items (document, line);
CREATE INDEX items_of_namespace ON items (namespace, kind, latest);
CREATE INDEX items_of_topic ON items (namespace, about);
CREATE TABLE vectors (
    item INTEGER PRIMARY KEY REFERENCES items ON DELETE CASCADE, model TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5 (scope, text, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE TRIGGER items_words AFTER DELETE ON items BEGIN DELETE FROM words WHERE rowid = old.id; END;
"""

_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")


class EmbeddedMemoryError(RuntimeError):
    """The file cannot be used as a memory. The message names it and the way out."""

    fit_to_show = True
    """Nothing that anybody said is in the message."""


class Busy(Exception):
    """Another process kept the file locked for longer than `WAIT`."""


class Database:
    """One connection to the file, opened at the first use. It belongs to the thread that uses it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened = 0
        self._changes = 0
        self._identity = (0, 0)
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            prepare(self.path)
            with self.guarded():
                self._connection = _connected(self.path)
            self._identity = _identity(self.path)
            self._opened += 1
        return self._connection

    def renew(self) -> None:
        """Lets go of a file that was deleted or replaced meanwhile; the next use opens what is there now."""
        if self._connection is not None and _identity(self.path) != self._identity:
            self.close()

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        return self.connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: object) -> sqlite3.Row | None:
        found: sqlite3.Row | None = self.connection.execute(sql, values).fetchone()
        return found

    def number(self, sql: str, *values: object) -> int:
        return int(self.connection.execute(sql, values).fetchone()[0])

    def run(self, sql: str, *values: object) -> int:
        """Runs one statement; returns the id of the row it made, if it made one."""
        return int(self.connection.execute(sql, values).lastrowid or 0)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """All or nothing. The lock is taken at once: a read that turns into a write can be refused."""
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        self._changes += 1

    def wipe(self) -> None:
        """Takes deleted words out of the search index and the write-ahead log, where they would linger."""
        with self.writing():
            self.run("INSERT INTO words (words) VALUES ('optimize')")
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def version(self) -> tuple[int, int, int]:
        """Changes with every commit of this or another process; the first number with every new file."""
        seen = self.number("PRAGMA data_version")
        return self._opened, seen, self._changes

    def version_after(self, version: tuple[int, int, int]) -> tuple[int, int, int]:
        """`version()` when nobody else wrote since `version` and this connection once; else `version`."""
        opened, seen, changes = version
        return (opened, seen, changes + 1) if self.version() == (opened, seen, changes + 1) else version

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Turns SQLite's complaints about the file into `EmbeddedMemoryError` and `Busy`."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(_BUSY):
                raise Busy from None
            raise _explained(self.path, error, name) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def prepare(path: Path) -> None:
    """Makes the folder and an empty file that only the user can read; cheap, and takes no lock.

    Raises `EmbeddedMemoryError` when the place cannot hold a memory.
    """
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            head = os.read(descriptor, 16)
        finally:
            os.close(descriptor)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise EmbeddedMemoryError(
            f"The memory file {str(path)!r} cannot be written ({error.strerror}). Choose another place for "
            "it, or make this one a writable file."
        ) from None
    if head and head != b"SQLite format 3\0":
        raise EmbeddedMemoryError(_UNREADABLE.format(path=str(path)))


_UNREADABLE = (
    "The memory file {path!r} is damaged or no memory file. Move it away, or restore it from a backup; "
    "without it the memory starts empty."
)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        # Two processes that make the file at the same moment: SQLite does not wait for this switch.
        deadline = time.monotonic() + WAIT
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith(_BUSY) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        if _layout(connection) == 0:
            connection.execute("BEGIN IMMEDIATE")
            if _layout(connection) == 0:  # else another process made the tables while this one waited
                for statement in _statements(_SCHEMA):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_LAYOUT}")
            connection.commit()
        if _layout(connection) > _LAYOUT:
            raise EmbeddedMemoryError(
                f"The memory file {str(path)!r} was written by a newer version of this module. Update the "
                "module, or choose another file."
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _layout(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """`executescript` would commit before it starts, and two processes would make the tables twice."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _explained(path: Path, error: sqlite3.Error, name: str) -> EmbeddedMemoryError:
    if name.startswith(_BROKEN):
        return EmbeddedMemoryError(_UNREADABLE.format(path=str(path)))
    if "fts5" in str(error):
        return EmbeddedMemoryError(
            "This Python's SQLite has no FTS5. Use another Python, or a Supermemory key."
        )
    return EmbeddedMemoryError(
        f"The memory file {str(path)!r} could not be used ({name or type(error).__name__}). Check the disk "
        "and the rights of the file and its folder."
    )


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (-1, -1)
    return status.st_dev, status.st_ino


def stamp(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> datetime:
    return datetime.now(UTC)


def fresh_key() -> str:
    return uuid.uuid4().hex[:22]


Row = Any
"""A row of the database: `sqlite3.Row`, whose values are whatever the column holds."""

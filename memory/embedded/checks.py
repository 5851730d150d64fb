"""Reading a request: what the endpoints need of it, checked, or an error in the service's own shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from . import lines
from .answers import Json
from .writing import Draft

_NAMESPACE = re.compile(r"[a-zA-Z0-9_:-]{1,100}")
_UNSUPPORTED = ("filter", "group")


class Refused(Exception):
    """An error that the service answers with."""

    def __init__(self, status: int, error: str, details: str | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.body: Json = {"error": error, **({"details": details} if details else {})}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    """As it came, still escaped, without the query."""
    query: Mapping[str, str]
    body: Any
    """The parsed JSON, or None."""
    fail: bool = False
    """A document that is added or changed ends as `failed`."""

    @property
    def parts(self) -> list[str]:
        return [unquote(part) for part in self.path.strip("/").split("/")]


def namespace_of(request: Request) -> str:
    name = request.parts[1]
    if not _NAMESPACE.fullmatch(name):
        raise invalid("namespace", "must be 1 to 100 letters, digits or _ : -")
    return name


def draft_of(body: Json, *, needs_content: bool, fail: bool) -> Draft:
    content = a_text(body, "content") if needs_content or body.get("content") is not None else None
    context = body.get("supportingContext")
    if context is not None and (not isinstance(context, str) or len(context) > 1500):
        raise invalid("supportingContext", "must be a text of at most 1500 characters")
    metadata = body.get("metadata")
    if metadata is not None:
        for name, value in an_object(metadata, "metadata").items():
            texts = isinstance(value, list) and all(isinstance(part, str) for part in value)
            if not texts and not isinstance(value, str | int | float | bool):
                raise invalid(f"metadata.{name}", "must be a text, a number, a boolean or a list of texts")
    date = body.get("date")
    if date is not None and (not isinstance(date, str) or lines.moment(date) is None):
        raise invalid("date", "must be an ISO 8601 time")
    a_choice(body, "dreaming", ("dynamic", "instant"))
    learn = (
        None
        if body.get("taskType") is None
        else a_choice(body, "taskType", ("memory", "superrag")) == "memory"
    )
    return Draft(content, clean(metadata), date, learn, fail)


def body_of(request: Request) -> Json:
    body = an_object(request.body if request.body is not None else {}, "body")
    for name in _UNSUPPORTED:
        if body.get(name) is not None:
            raise Refused(400, f"The embedded memory does not support {name}")
    return body


def an_object(value: Any, name: str) -> Json:
    if not isinstance(value, dict):
        raise invalid(name, "must be an object")
    return value


def ids_of(request: Request, most: int) -> list[str]:
    ids = body_of(request).get("ids")
    if not isinstance(ids, list) or not 1 <= len(ids) <= most:
        raise invalid("ids", f"must be a list of 1 to {most} ids")
    return [an_id(value, "ids") for value in ids]


def an_id(value: Any, name: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 255:
        raise invalid(name, "must be a text of 1 to 255 characters")
    return str(clean(value))


def a_text(body: Json, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise invalid(name, "must be a text of at least one character")
    return str(clean(value))


def a_choice(values: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = values.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise invalid(name, f"must be one of {', '.join(choices)}")
    return str(value)


def a_number(values: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = values.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise invalid(name, f"must be a whole number from {least} to {most}")
    return value


def included(request: Request, known: set[str]) -> frozenset[str]:
    wanted = frozenset(part for part in request.query.get("include", "").split(",") if part)
    if not wanted <= known:
        raise invalid("include", f"must be of {', '.join(sorted(known))}")
    return wanted


def invalid(name: str, problem: str) -> Refused:
    refused = Refused(400, f"{name} {problem}")
    refused.body = {"success": False, "error": [{"message": f"{name} {problem}", "path": name.split(".")}]}
    return refused


def clean(value: Any) -> Any:
    """`value` without lone surrogates, which JSON can carry and no file can."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))

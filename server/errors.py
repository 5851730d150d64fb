"""One shape for all that goes wrong: a status, a word for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web


class ApiError(Exception):
    """Becomes `{"error": sentence, "code": word, ...}`; nothing in it may come from another person."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after: float | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.details = dict(details or {})

    def response(self) -> web.Response:
        body = {"error": self.message, "code": self.code, **self.details}
        answer = web.json_response(body, status=self.status)
        if self.retry_after is not None:
            answer.headers["Retry-After"] = str(max(1, round(self.retry_after + 0.5)))
        return answer

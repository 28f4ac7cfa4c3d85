"""What a request is refused for: a status, and a message that says what is allowed."""

from __future__ import annotations


class Refused(Exception):
    """A request that cannot be answered as it stands; what is wrong with an input itself is a UserError (422)."""

    def __init__(self, status: int, message: str, *, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.headers = headers or {}

"""An answer that is JSON, whatever its texts consist of: none fails because of what is in it."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse

from headgate.texts import to_json


class Json(JSONResponse):
    """A value as JSON."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of the answer."""
        return to_json(content)

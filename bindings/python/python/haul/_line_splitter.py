"""Splits a body that arrives in pieces into lines, in linear time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LineSplitter"]


class LineSplitter:
    """Splits pieces of a body into lines, as ``splitlines`` or ``split(delimiter)`` would split the
    whole body.

    A line that ends in CR is returned at once. An LF at the beginning of the next piece belongs to
    it."""

    __slots__ = ("_delimiter", "_edge", "_ends_in_cr", "_overlap", "_pieces")

    def __init__(self, delimiter: Any = None) -> None:
        self._delimiter = delimiter
        #: The pieces of the unfinished line, which are not searched again.
        self._pieces: list[Any] = []
        #: The end of that line, where a delimiter may begin; None before the first piece.
        self._edge: Any = None
        self._overlap = max(len(delimiter) - 1, 0) if delimiter else 0
        self._ends_in_cr = False

    def push(self, piece: Any) -> list[Any]:
        """Returns the lines that end in this piece."""
        if not piece:
            return []
        if self._delimiter:
            return self._split(piece)
        cr, lf = ("\r", "\n") if isinstance(piece, str) else (b"\r", b"\n")
        if self._ends_in_cr and piece.startswith(lf):
            piece = piece[1:]
            self._ends_in_cr = False
            if not piece:
                return []
        lines: list[Any] = piece.splitlines()
        self._ends_in_cr = piece.endswith(cr)
        # The last line holds no line end, so the piece ends in one if its last character is
        # another.
        rest = lines.pop() if lines[-1][-1:] == piece[-1:] else None
        if lines:
            self._complete(lines)
        if rest is not None:
            self._pieces.append(rest)
        return lines

    def end(self) -> list[Any]:
        """Returns the unfinished line at the end of the body.

        After a delimiter it is empty, as with ``split``."""
        if self._delimiter:
            return [] if self._edge is None else [self._edge[:0].join([*self._pieces, self._edge])]
        return [self._pieces[0][:0].join(self._pieces)] if self._pieces else []

    def _split(self, piece: Any) -> list[Any]:
        if self._edge is not None:
            piece = self._edge + piece
        lines: list[Any] = piece.split(self._delimiter)
        rest = lines.pop()
        if lines:
            self._complete(lines)
        at = max(len(rest) - self._overlap, 0)
        self._edge = rest[at:]
        if at:
            self._pieces.append(rest[:at])
        return lines

    def _complete(self, lines: list[Any]) -> None:
        """Prepends the stored pieces to the first line."""
        if self._pieces:
            lines[0] = lines[0][:0].join([*self._pieces, lines[0]])
            self._pieces.clear()

"""The directory of ``python -m haul.fetch`` for the parts of its output."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any

__all__ = ["PartsDirectory"]


class PartsDirectory:
    """A directory that only this user can write. All its files are opened through one descriptor, and
    no link in it is followed: the output may be in a directory such as /tmp, where others can make
    the parts directory first.

    :raises ValueError: the path is that of a link, or others could have put files there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if path.is_symlink():
                raise ValueError(f"{path} is a link, perhaps of another user: remove it") from None
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._check()
        except ValueError:
            self.close()
            raise

    def _check(self) -> None:
        status = os.fstat(self._descriptor)
        if status.st_uid != os.geteuid():
            raise ValueError(
                f"{self.path} belongs to another user ({status.st_uid}), who could change the results: write the output "
                "to a directory of your own"
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError(
                f"{self.path} is writable for other users, who could change the results: remove it, or 'chmod 700' it "
                "if all its files are yours"
            )

    def open(self, name: str, mode: str = "rb", **options: Any) -> IO[Any]:
        """Opens a file of the directory.

        :raises OSError: it is a link, or the system refuses it."""

        def opener(name: str, flags: int) -> int:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self._descriptor)

        try:
            return open(name, mode, opener=opener, **options)
        except OSError as error:
            error.filename = os.fspath(self.path / name)
            raise

    def exists(self, name: str) -> bool:
        """Returns whether there is a regular file of this name."""
        try:
            return stat.S_ISREG(os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return False

    def rename(self, name: str, new: str) -> None:
        """Renames a file within the directory."""
        os.replace(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def move_out(self, name: str, target: Path) -> None:
        """Renames a file to a path outside of the directory."""
        os.replace(name, target, src_dir_fd=self._descriptor)

    def remove(self) -> None:
        """Removes the files and the directory."""
        for name in os.listdir(self._descriptor):
            os.unlink(name, dir_fd=self._descriptor)
        os.rmdir(self.path)

    def close(self) -> None:
        """Closes the descriptor of the directory."""
        os.close(self._descriptor)

"""Folders for files that are gone with the process, under TVM's name: `from sator.contrib import utils`."""
import os
import shutil
import tempfile
import weakref


class TempDirectory:
    """A folder that is removed with this object, or by remove(). `relpath(name)` is a path in it."""

    def __init__(self, custom_path=None, keep_for_debug=False):
        self.temp_dir = custom_path or tempfile.mkdtemp(prefix="sator")
        self._removed = None if custom_path or keep_for_debug else weakref.finalize(self, shutil.rmtree, self.temp_dir, True)
        os.makedirs(self.temp_dir, exist_ok=True)

    @property
    def path(self):
        """The folder."""
        return self.temp_dir

    def relpath(self, name):
        """A path in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self):
        """The names in the folder."""
        return os.listdir(self.temp_dir)

    def remove(self):
        """Removes the folder with what is in it, unless it stays."""
        if self._removed is not None:
            self._removed()

    def __truediv__(self, other):
        return os.path.join(self.temp_dir, other)


def tempdir(custom_path=None, keep_for_debug=False):
    """A new folder for files of this process.

    custom_path      a folder of one's own, which stays
    keep_for_debug   whether it stays
    """
    if custom_path is not None and not isinstance(custom_path, (str, os.PathLike)):
        raise TypeError(f"tempdir: custom_path = {custom_path!r} is a {type(custom_path).__name__}\n  needs: a path, or None")
    return TempDirectory(custom_path, keep_for_debug)

"""TVM's sessions on other machines, of which the one on this machine is here: `from sator import rpc; remote = rpc.LocalSession()`."""
import os
import shutil

from sator.contrib_utils import tempdir
from sator.error import TVMError


class LocalSession:
    """Files, programs and the device of this machine, as those of a session: upload, load_module, cpu."""

    def __init__(self):
        self._folder = tempdir()

    def _path(self, name):
        return self._folder.relpath(os.path.basename(name))

    def upload(self, data, target=None):
        """Copies a file, or bytes, into the session's folder.

        target   its name there; of a file by default its own
        """
        if isinstance(data, (bytes, bytearray)):
            if target is None:
                raise TVMError("error: upload: bytes without a name\n  needs: target, the name of the file")
            with open(self._path(target), "wb") as file:
                file.write(data)
        else:
            shutil.copyfile(data, self._path(target or data))

    def download(self, path):
        """The bytes of a file of the session."""
        with open(self._path(path), "rb") as file:
            return file.read()

    def remove(self, path):
        """Removes a file of the session."""
        os.remove(self._path(path))

    def load_module(self, path):
        """The module of a library that was uploaded."""
        from sator import runtime

        return runtime.load_module(self._path(path))

    def get_function(self, name):
        """A function that register_func has."""
        from sator import runtime

        return runtime.get_global_func(name)

    def cpu(self, dev_id=0):
        """The device."""
        from sator import runtime

        return runtime.cpu(dev_id)

    def device(self, dev_type, dev_id=0):
        """A device by its kind. Errors: of sator.device."""
        from sator import runtime

        return runtime.device(dev_type, dev_id)


def __getattr__(name):
    from sator import paths

    deep = paths.submodule("sator.rpc", name)
    if deep is not None:
        return deep
    raise paths.missing("sator.rpc", name, globals())

"""Files that are there as a whole or not at all."""
import os


def write_whole(path, write):
    """Calls write(name) with a name beside the path, and renames what it wrote: a file of that path that somebody has open goes on as it was."""
    whole = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        write(whole)
        os.replace(whole, path)
    except BaseException:
        if os.path.exists(whole):
            os.remove(whole)
        raise

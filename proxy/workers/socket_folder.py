"""Where the socket lies by which multiprocessing is asked for worker processes: a folder that can be written to, and
whose name leaves room for the socket's.
"""

import os
import tempfile

from sluicegate.proxy.server.cannot_start import CannotStart

_SHARED_MEMORY = "/dev/shm"  # noqa: S108
# A socket's name has at most 107 bytes, of which multiprocessing takes 32 for itself.
_LONGEST_FOLDER = 72


def choose_socket_folder() -> None:
    """The temporary folder, or else shared memory, which is then the temporary folder of this process. Raises
    CannotStart.
    """
    try:
        if len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_FOLDER:
            return
    except FileNotFoundError:
        pass  # there is none
    if not os.access(_SHARED_MEMORY, os.W_OK):
        raise CannotStart(
            "several workers need a folder for a socket between their processes: one that can be written to, and whose "
            f"name has at most {_LONGEST_FOLDER} bytes. None of $TMPDIR, /tmp, /var/tmp, /usr/tmp, the current folder "
            f"and {_SHARED_MEMORY} is one; set TMPDIR"
        )
    tempfile.tempdir = _SHARED_MEMORY

"""Starts a program with the restrictions of a pod.

It has no capabilities, may write to only one folder (Landlock), and cannot use the system calls that the default
seccomp profile of container engines denies.

Run: python -m tests.broker.confined FOLDER COMMAND ARGUMENT… (an empty FOLDER means no write access)

The system call numbers are for Linux on x86-64.
"""

import ctypes
import os
import platform
import sys
from struct import Struct

_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_CAPSET, _CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 126, 444, 445, 446
_CAPABILITIES_VERSION_3 = 0x20080522
_VERSION = 1  # flag of landlock_create_ruleset: return the supported version
_PATH_BENEATH = 1
_WRITING = {1: 0b1_1111_1111_0010, 2: 1 << 13, 3: 1 << 14}
"""Landlock's write access rights, by the version that introduced them: landlock(7)."""
_DEVICES = "/dev"

# The calls that Docker's default profile blocks according to its documentation, except calls that current kernels
# allow.
DENIED = {
    **{"acct": 163, "add_key": 248, "bpf": 321, "chroot": 161, "clock_adjtime": 305, "clock_settime": 227},
    **{"delete_module": 176, "fanotify_init": 300, "finit_module": 313, "fsconfig": 431, "fsmount": 432},
    **{"fsopen": 430, "fspick": 433, "get_mempolicy": 239, "init_module": 175, "io_uring_enter": 426},
    **{"io_uring_register": 427, "io_uring_setup": 425, "ioperm": 173, "iopl": 172, "kcmp": 312},
    **{"kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212, "mbind": 237},
    **{"mount": 165, "move_mount": 429, "move_pages": 279, "open_by_handle_at": 304, "open_tree": 428},
    **{"perf_event_open": 298, "pivot_root": 155, "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101},
    **{"quotactl": 179, "reboot": 169, "request_key": 249, "set_mempolicy": 238, "setns": 308, "settimeofday": 164},
    **{"swapoff": 168, "swapon": 167, "sysfs": 139, "syslog": 103, "umount2": 166, "unshare": 272, "uselib": 134},
    **{"userfaultfd": 323, "ustat": 136, "vhangup": 153},
}
_X86_64 = 0xC000003E
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOT_PERMITTED = 0x7FFF0000, 0x00050001  # fail with EPERM
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_INSTRUCTION = Struct("=HBBI")

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _call(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _system(number: int, what: str, *arguments: object) -> int:
    return _call(_libc.syscall(number, *arguments), what)


def can_confine() -> bool:
    """Return whether the platform has these call numbers and the kernel supports Landlock."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return False
    return int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)) > 0


def drop_capabilities() -> None:
    """Drop all capabilities, also of root and of programs that are started later."""
    _call(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    header, none = Struct("=Ii").pack(_CAPABILITIES_VERSION_3, 0), bytes(24)
    _system(_CAPSET, "capset", header, none)


def write_only_in(folder: str) -> None:
    """Allow writes only in the folder and to devices. The folder becomes the working directory, as in the image."""
    version = _system(_CREATE_RULESET, "landlock_create_ruleset", None, ctypes.c_size_t(0), _VERSION)
    writing = sum(rights for since, rights in _WRITING.items() if since <= version)
    asked = Struct("=Q").pack(writing)
    rules = _system(_CREATE_RULESET, "landlock_create_ruleset", asked, ctypes.c_size_t(len(asked)), 0)
    for place in (*filter(None, [folder]), _DEVICES):
        descriptor = os.open(place, os.O_PATH)
        rule = Struct("=Qi").pack(writing, descriptor)
        _system(_ADD_RULE, "landlock_add_rule", rules, _PATH_BENEATH, rule, 0)
        os.close(descriptor)
    _system(_RESTRICT_SELF, "landlock_restrict_self", rules, 0)
    os.close(rules)
    if folder:
        os.chdir(folder)


def deny_calls(numbers: list[int]) -> None:
    """Make these system calls fail with EPERM, as under an engine's profile."""
    code = [(_LOAD_WORD, 0, 0, _ARCHITECTURE_AT), (_JUMP_IF_EQUAL, 1, 0, _X86_64), (_RETURN, 0, 0, _NOT_PERMITTED)]
    code.append((_LOAD_WORD, 0, 0, _NUMBER_AT))
    code += [(_JUMP_IF_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    code += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOT_PERMITTED)]
    packed = b"".join(_INSTRUCTION.pack(*each) for each in code)
    program = _Program(len(code), packed)
    _call(_libc.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0), "prctl")


def main() -> None:
    """Confine this process, then become the command."""
    folder, *command = sys.argv[1:]
    drop_capabilities()
    write_only_in(folder)
    deny_calls(sorted(DENIED.values()))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()

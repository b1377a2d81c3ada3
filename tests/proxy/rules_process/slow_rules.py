"""Defines custom rules whose behaviour a record's value selects, installed as pip would install them."""

from pathlib import Path

SOURCE = '''
import os, time
from sluicegate.validation.rules.rule import Outage, Part

class Does:
    """What the value says: spin SECONDS of CPU time, take BYTES, die by SIGNAL, sleep SECONDS, or nothing."""
    parts = Part.VALUE
    is_slow = True
    def __init__(self, options):
        self.kept = []

    def fault(self, record):
        what, _, much = record.value.decode().partition(" ")
        if what == "spin":
            end = time.process_time() + float(much)
            while time.process_time() < end:
                pass
        elif what == "take":
            bytearray(int(much))
        elif what == "keep":
            self.kept.append(os.urandom(int(much)))
        elif what == "sleep":
            time.sleep(float(much))
        elif what == "die":
            os.kill(os.getpid(), int(much))
        elif what == "out":
            raise Outage("the other side is away")
        elif what == "fail":
            raise ValueError("secret")
        elif what == "pid":
            return str(os.getpid())
        return "is bad" if what == "bad" else None
'''


def install_slow_rules(folder: Path) -> None:
    """Install the entry point `does` for processes that have the folder on their path."""
    (folder / "slow_rules_of_a_test.py").write_text(SOURCE)
    info = folder / "slow_rules_of_a_test-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-rules-of-a-test\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[sluicegate.rules]\ndoes = slow_rules_of_a_test:Does\n")

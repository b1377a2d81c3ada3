#!/usr/bin/env python3
"""Rewrites an sdist so that equal sources give equal bytes: sorted members, one time, no owner.

SOURCE_DATE_EPOCH=SECONDS scripts/release/normalise_sdist.py FILE.tar.gz
"""

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path

file = Path(sys.argv[1])
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
packed = io.BytesIO()
with tarfile.open(file) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
    for member in sorted(old.getmembers(), key=lambda member: member.name):
        member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        member.pax_headers = {}
        new.addfile(member, old.extractfile(member) if member.isreg() else None)
with file.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=epoch) as out:
    out.write(packed.getvalue())

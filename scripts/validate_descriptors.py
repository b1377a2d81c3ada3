#!/usr/bin/env python3
"""Writes the descriptor of buf/validate/validate.proto, which schemas import without a reference.

scripts/validate_descriptors.py VALIDATE_PROTO    # the file of the Maven artefact build.buf:protovalidate
"""

import subprocess
import sys
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

NAME = "buf/validate/validate.proto"
MADE = Path(__file__).parent.parent / "validation" / "rules" / "protobuf" / "imports" / "validate.binpb"

with TemporaryDirectory() as folder:
    source = Path(folder, NAME)
    source.parent.mkdir(parents=True)
    source.write_bytes(Path(sys.argv[1]).read_bytes())
    well_known = f"--proto_path={resources.files('grpc_tools') / '_proto'}"
    made = [f"--descriptor_set_out={MADE}", NAME]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={folder}", well_known, *made], check=True)

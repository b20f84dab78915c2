"""`make fuzz-api`: schemathesis sends what the description of the API allows and what it does not."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.commands import environment, start, write_corpus

EXAMPLES = 500
"""Of each kind for each of six operations: more than two thousand requests in all."""
CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance,status_code_conformance"


def main(tool: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        store, source = Path(folder) / "runs", write_corpus(Path(folder) / "corpus.csv")
        train = [
            sys.executable,
            "-m",
            "heedful",
            "train",
            str(source),
            "--epochs",
            "5",
            "--store",
            str(store),
            "--json",
        ]
        done = subprocess.run(train, capture_output=True, text=True, check=True, env=environment())
        run = json.loads(done.stdout)["run"]
        server = start("serve", run, "--port", 0, "--rate", 1e6, stdout=subprocess.PIPE, stderr=None)
        assert server.stdout is not None
        try:
            url = next(hit[1] for line in server.stdout if (hit := re.search(r"serves (http://\S+)", line)))
            return subprocess.run([*_command(tool), f"{url}/api/v1/openapi.json"], cwd=folder).returncode
        finally:
            server.terminate()
            server.wait()


def _command(tool: str) -> list[str]:
    phases = ["--phases", "examples,coverage,fuzzing", "--mode", "all"]
    return [str(Path(tool).resolve()), "run", "--checks", CHECKS, *phases, "-n", str(EXAMPLES), "--seed", "1"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

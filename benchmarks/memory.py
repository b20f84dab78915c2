"""Memory of a training step when one document of a batch is very long: padding pays for it 64 times, we pay once."""

import resource
import subprocess
import sys

LENGTHS = (200, 20_000)


def peak_megabytes(kind: str, longest: int) -> float:
    """The most memory that a process which does a few steps ever held."""
    command = [sys.executable, "-m", "benchmarks.memory", kind, str(longest)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def steps(kind: str, longest: int) -> None:
    import torch

    from benchmarks.training import our_step, their_step
    from heedful.text.corpus import Split
    from heedful.text.ragged import offsets_of
    from heedful.text.tokenize import Tokens

    torch.set_num_threads(1)
    lengths = torch.tensor([200] * 63 + [longest])
    tokens = torch.randint(0, 5000, (int(lengths.sum()),), generator=torch.Generator().manual_seed(0))
    held = Tokens(numbers=tokens, offsets=offsets_of(lengths), spans=torch.zeros(len(tokens), 2, dtype=torch.int32))
    split = Split(texts=[""] * 64, labels=torch.arange(64) % 2, tokens=held)
    step = our_step(split, 5000, 64, "token") if kind == "ours" else their_step(split, 5000)
    for _ in range(3):
        step(torch.arange(64))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def rows() -> list[dict[str, str]]:
    found = []
    for kind in ("textbook", "ours"):
        short, long = (peak_megabytes(kind, longest) for longest in LENGTHS)
        found.append(
            {
                "what": f"{kind}: 64 documents of 200 tokens, one made 20,000 tokens long",
                "peak MB, even": f"{short:.0f}",
                "peak MB, one long": f"{long:.0f}",
                "more MB": f"{long - short:.0f}",
            }
        )
    return found


if __name__ == "__main__":
    steps(sys.argv[1], int(sys.argv[2]))

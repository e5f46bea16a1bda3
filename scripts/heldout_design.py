"""Print a seeded Latin hypercube of prover settings, one `highwater prove` command line each.

usage: heldout_design.py COUNT SEED LOG_SIZE...

A hypercube of COUNT points cuts each setting's range into COUNT equal parts and takes each part
once, so that few runs cover every value of every setting. The same COUNT, SEED and sizes give the
same lines on every machine (random.Random's random() is stable over Python versions).
"""

import random
import sys

CHANNELS = ["0", "1", "2", "3", "4", "6", "8", "unbounded"]
RELEASES = ["synth_end", "send_accepted", "gpu_pickup", "freed"]


def permuted(rng, count):
    """Places 0..1 of one dimension: one in each of count equal parts, in random order."""
    places = [(i + rng.random()) / count for i in range(count)]
    for i in range(count - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        places[i], places[j] = places[j], places[i]
    return places


def pick(words, place):
    return words[int(place * len(words))]


def budget(log_size, place):
    """Off in half of the runs, else room for 2 to 8 partitions' settled bytes (a, b, c and W)."""
    if place < 0.5:
        return "unbounded"
    settled = 128 << log_size
    return f"{settled * (2 + int((place - 0.5) * 2 * 7)) >> 20}MiB"


def main():
    count, seed, sizes = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    rng = random.Random(seed)
    columns = [permuted(rng, count) for _ in range(6)]
    for size, workers, channel, release, early, room in zip(*columns):
        log_size = int(pick(sizes, size))
        print(
            f"--log-size={log_size}",
            f"--partition-workers={1 + int(workers * 8)}",
            f"--channel-capacity={pick(CHANNELS, channel)}",
            f"--permit-release={pick(RELEASES, release)}",
            f"--early-free={pick(['true', 'false'], early)}",
            f"--byte-budget={budget(log_size, room)}",
        )


main()

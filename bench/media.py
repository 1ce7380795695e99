#!/usr/bin/env python3
"""Live media through `restp forward --udp --deadline` over two emulated links, of which one dies half-way: how much arrives in time?

    python3 bench/media.py --restp target/release/restp --rate 4 --link "5 Mbit/s" --loss 0.01 --dies-at 0.5 --seconds 30

MPEG-TS as encoders send it, as in `udp_deadline.py`. What dies with a link cannot be carried by the other where that has no room: 6 Mbit/s over two
links of 5 is measured with both alive (`--rate 6 --dies-at 0`), a death with what one link carries.
"""

import argparse
import json
import tempfile
import threading
import time

from udp_deadline import play, standing

NAMES = ("a", "b")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--rate", type=float, default=4.0, help="Mbit/s of media")
    parser.add_argument("--link", default="5 Mbit/s", help="rate of each link")
    parser.add_argument("--delays", type=float, nargs=2, default=[20.0, 35.0], help="ms one way, of each link")
    parser.add_argument("--loss", type=float, default=0.01, help="share of packets, both ways")
    parser.add_argument("--deadline", type=float, default=300.0, help="ms")
    parser.add_argument("--dies-at", type=float, default=0.5, help="when the first link dies, as a share of the time; 0: never")
    parser.add_argument("--set", action="append", default=[], help="SERVICE=CHOICE of the sending end")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        print(json.dumps(measure(options, data)))


def measure(options, data):
    link = 'rate = "{}"\ndelay = "{} ms"\nloss = {{ rate = {}, direction = "both" }}\n'
    links = {name: link.format(options.link, delay, options.loss) for name, delay in zip(NAMES, options.delays)}
    with standing(options, data, f"seed = {options.seed}\n", links) as (target, listens, emulator):
        time.sleep(1)  # until every link is up
        if options.dies_at:
            threading.Timer(options.seconds * options.dies_at, kill, (emulator,)).start()
        return play(options, target, listens) | {"one_dies": bool(options.dies_at)}


def kill(emulator):
    emulator.stdin.write(f"set {NAMES[0]} loss=1 reverse_loss=1\n")
    emulator.stdin.flush()


if __name__ == "__main__":
    main()

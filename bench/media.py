#!/usr/bin/env python3
"""Live media through `restp forward --udp --deadline` over two emulated links, of which one dies half-way: how much arrives in time?

    python3 bench/media.py --restp target/release/restp --rate 4 --link "5 Mbit/s" --loss 0.01 --dies-at 0.5 --seconds 30

MPEG-TS as encoders send it, as in `udp_deadline.py`. What dies with a link cannot be carried by the other where that has no room: 6 Mbit/s over two
links of 5 is measured with both alive (`--rate 6 --dies-at 0`), a death with what one link carries.
"""

import argparse
import json
import os
import socket
import subprocess
import tempfile
import threading
import time

from udp_deadline import BYTES, receive, send, start

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
    target = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    target.bind(("127.0.0.1", 0))
    target.settimeout(3)
    place = f"127.0.0.1:{target.getsockname()[1]}"
    processes = []
    try:
        server = start(options.restp, ["serve", "--json", "--listen", "127.0.0.1:0", "--allow", f"udp:{place}"], data)
        processes.append(server)
        invitation = json.loads(server.stdout.readline())
        net = os.path.join(data, "net.toml")
        with open(net, "w", encoding="utf-8") as file:
            file.write(links(options, invitation["addresses"][0]))
        emulator = start(options.restp, ["emulate", "--json", "--control", net], data, stdin=subprocess.PIPE)
        processes.append(emulator)
        ready = json.loads(emulator.stdout.readline())["ready"]
        words = ["forward", "--json", invitation["ticket"], "--udp", f"0:{place}", "--deadline", f"{options.deadline:g}ms"]
        for link in ready:
            words += ["--address", link["listen"]]
        for change in options.set:
            words += ["--set", change]
        forward = start(options.restp, words, data)
        processes.append(forward)
        listens = json.loads(forward.stdout.readline())["forwards"][0]["listen"]
        time.sleep(1)  # until every link is up
        return play(options, target, listens, emulator)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def links(options, to):
    link = '[[path]]\nname = "{}"\nlisten = "127.0.0.1:0"\nto = "{}"\nrate = "{}"\ndelay = "{} ms"\nloss = {{ rate = {}, direction = "both" }}\n'
    paths = (link.format(name, to, options.link, delay, options.loss) for name, delay in zip(NAMES, options.delays))
    return f"seed = {options.seed}\n" + "".join(paths)


def play(options, target, listens, emulator):
    host, port = listens.rsplit(":", 1)
    interval = BYTES * 8 / (options.rate * 1e6)
    number = int(options.seconds / interval)
    sending = threading.Thread(target=send, args=((host, int(port)), number, interval))
    sending.start()
    death = None
    if options.dies_at:
        death = threading.Timer(options.seconds * options.dies_at, kill, (emulator,))
        death.start()
    delays = receive(target, number)
    sending.join()
    in_time = sum(delay <= options.deadline / 1e3 for delay in delays)
    ordered = sorted(delays) or [float("nan")]
    shares = (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    return {
        "sent": number,
        "arrived": len(delays),
        "in_time": in_time,
        "in_time_share": round(in_time / number, 5),
        "delay_ms": {name: round(ordered[int(len(ordered) * share)] * 1e3, 1) for name, share in shares},
        "one_dies": death is not None,
    }


def kill(emulator):
    emulator.stdin.write(f"set {NAMES[0]} loss=1 reverse_loss=1\n")
    emulator.stdin.flush()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""iperf3 through `restp tunnel` over two links, between network namespaces. Needs root, iperf3 and `ip`.

    python3 bench/tunnel.py --restp target/release/restp --seconds 20

One row for each case: the better link alone (kernel TCP), the tunnel over both, with losses on one, and while one dies. The links are
those of `restp emulate --tun`: 50 and 20 Mbit/s, 20 and 60 ms of round trip.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

LINES = (("A", "50 Mbit/s", "10 ms"), ("B", "20 Mbit/s", "30 ms"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--set", action="append", default=[], help="SERVICE=CHOICE of the sending end")
    parser.add_argument("--only", default="", help="cases with these words")
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    cases = (
        ("TCP over A alone", {"alone": True}),
        ("tunnel over A and B", {}),
        ("tunnel, 1 % lost on B", {"loss": ("B", 0.01)}),
        ("tunnel, 1 % lost on A", {"loss": ("A", 0.01)}),
        ("tunnel, A dies half-way", {"dies": "A"}),
    )
    for name, case in cases:
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder, Net(options.restp, folder, case, options.set) as net:
            print(json.dumps({"case": name, **net.measure(options.seconds)}), flush=True)


class Net:
    """Two namespaces, two emulated links, a server and a tunnel."""

    def __init__(self, restp, folder, case, changes):
        self.changes = [word for change in changes for word in ("--set", change)]
        self.restp, self.folder, self.case = restp, folder, case
        self.sides = [f"restp-bench-{os.getpid()}-{side}" for side in ("left", "right")]
        self.running = []

    def __enter__(self):
        for side in self.sides:
            subprocess.run(["ip", "netns", "add", side], check=True)
            subprocess.run(["ip", "-n", side, "link", "set", "lo", "up"], check=True)
        text = f'[tun]\nnamespaces = ["{self.sides[0]}", "{self.sides[1]}"]\n'
        for name, rate, delay in LINES:
            text += f'[[path]]\nname = "{name}"\nrate = "{rate}"\ndelay = "{delay}"\n'
            if self.case.get("loss", ("", 0))[0] == name:
                text += f'loss = {{ rate = {self.case["loss"][1]}, direction = "both" }}\n'
        network = os.path.join(self.folder, "net.toml")
        with open(network, "w", encoding="utf-8") as file:
            file.write(text)
        self.start([self.restp, "emulate", "--tun", "--json", network])
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
            process.wait()
        for side in self.sides:
            subprocess.run(["ip", "netns", "delete", side], check=False)

    def start(self, words, side=None):
        """Starts a command that says in its first line that it is ready."""
        inside = ["ip", "netns", "exec", self.sides[side]] if side is not None else []
        environment = dict(os.environ, XDG_DATA_HOME=os.path.join(self.folder, str(side)))
        process = subprocess.Popen([*inside, *words], stdout=subprocess.PIPE, env=environment, text=True)
        self.running.append(process)
        line = process.stdout.readline()
        return json.loads(line) if line.startswith("{") else {}

    def measure(self, seconds):
        """Goodput from the left to the right, and for how long nothing arrived once it ran."""
        to = "10.77.0.2"
        if not self.case.get("alone"):
            listen = ["--listen", "10.77.0.2:7070", "--listen", "10.77.1.2:7070"]
            served = self.start([self.restp, "serve", "--json", *listen, "--allow", "tunnel:10.9.0.1/30"], 1)
            bind = ["--bind", "tA", "--bind", "tB"]
            self.start([self.restp, "tunnel", "--json", served["ticket"], *bind, *self.changes], 0)
            to = "10.9.0.1"
        server = ["ip", "netns", "exec", self.sides[1], "iperf3", "--server", "--one-off", "--interval", "0.1", "--json"]
        receiving = subprocess.Popen(server, stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        client = ["ip", "netns", "exec", self.sides[0], "iperf3", "--client", to, "--time", str(seconds), "--json"]
        running = subprocess.Popen(client, stdout=subprocess.PIPE, text=True)
        if "dies" in self.case:
            time.sleep(seconds / 2)
            device = f"t{self.case['dies']}"
            subprocess.run(["ip", "-n", self.sides[0], "link", "set", device, "down"], check=True)
        sent = json.loads(running.communicate(timeout=seconds * 3 + 30)[0])
        if "error" in sent:
            receiving.terminate()
            return {"error": sent["error"]}
        # What arrives counts: senders fill buffers.
        result = json.loads(receiving.communicate(timeout=30)[0])
        received = result["end"]["sum_received"]["bits_per_second"]
        rates = [step["sum"]["bits_per_second"] for step in result["intervals"]][20:]
        silent = longest_run(rate < 1e5 for rate in rates) / 10
        return {"goodput_mbit_s": round(received / 1e6, 1), "of_sum": round(received / 70e6, 3), "longest_gap_s": silent}


def longest_run(steps):
    """The most steps in a row that are true."""
    longest = run = 0
    for step in steps:
        run = run + 1 if step else 0
        longest = max(longest, run)
    return longest


if __name__ == "__main__":
    main()

"""A model server in a process of its own, as bad as servers are: python model_server.py prints its port.

POST /<protocol>/<mode> asks it; GET /seen/<mode> tells what it has seen. The standard library and NumPy alone.
"""

import atexit
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

LOCK = threading.Lock()
SEEN = defaultdict(lambda: {"rows": 0, "requests": 0, "most_at_once": 0, "answered": [], "tokens": []})
NOW = Counter()
OUTPUTS = 2


def f(a):
    """Two outputs of three features or more."""
    a = np.asarray(a, dtype=np.float64)
    flat = a.reshape(len(a), -1)
    return np.column_stack([np.tanh(flat[:, 0]) + flat[:, 1] * flat[:, 2], flat[:, 1] ** 2])


def rows_in(protocol, told):
    if protocol == "v2":
        (tensor,) = told["inputs"]
        assert tensor["datatype"] in ("FP64", "FP32")
        assert tensor["name"] == "input"
        return np.array(tensor["data"]).reshape(tensor["shape"])
    if protocol == "v1":
        return np.array(told["instances"])
    if "inputs" in told:
        return np.array(told["inputs"])
    split = told["dataframe_split"]
    at = [split["columns"].index(name) for name in ("a", "b", "c")]
    kinds = [
        1.0 if "kind" not in split["columns"] else len(row[split["columns"].index("kind")]) for row in split["data"]
    ]
    return np.array([[row[j] for j in at] for row in split["data"]]) * np.array(kinds)[:, None]


def answer(protocol, told, values):
    if protocol == "v2":
        data = values.ravel().tolist()
        tensor = {"name": "scores", "shape": list(values.shape), "datatype": "FP64", "data": data}
        return {"id": told["id"], "model_name": "m", "outputs": [tensor]}
    return {"predictions": values.tolist()}


def spoilt(mode, protocol, told, values):
    """Answers that are none."""
    good = answer(protocol, told, values)
    out = good["outputs"][0] if protocol == "v2" else good
    name = "data" if protocol == "v2" else "predictions"
    if mode == "text":
        return b"<html>busy</html>"
    if mode == "a_list":
        return b"[1, 2]"
    if mode == "deep":
        return b"[" * 100_000
    if mode == "too_large":
        return b" " * (2**24 + 2**20)
    if mode == "no_field":
        return {"error": "the model is on holiday"}
    if mode == "other_id":
        return good | {"id": "another"}
    if mode == "few_rows":
        return answer(protocol, told, values[1:])
    if mode == "wrong_shape":
        out["shape"] = [len(values), OUTPUTS + 1]
    if mode == "no_columns":
        return answer(protocol, told, values[:, :0])
    if mode == "words":
        out[name] = ["high"] * len(out[name])
    if mode == "true":
        out[name] = [True] * len(out[name])
    if mode == "null":
        out[name] = [None, *out[name][1:]]
    if mode == "ragged":
        out[name] = [[1.0], [1.0, 2.0], *[[1.0]] * (len(values) - 2)]
    if mode == "astronomical":
        out[name] = [10**400] * len(out[name])
    if mode == "nan":
        out[name] = [float("nan")] * values.size if protocol == "v2" else [float("nan")] * len(values)
    if mode == "two_tensors":
        good["outputs"].append(out | {"name": "others", "data": [0.0] * values.size})
    if mode == "records":
        return {"predictions": [{"one": row[0], "two": row[1]} for row in values.tolist()]}
    return good


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body of an answer in one piece: in two, the second waits for 40 ms

    def log_message(self, *args):
        pass

    def do_GET(self):
        mode = self.path.split("/")[2]
        with LOCK:
            self.say(200, SEEN[mode])

    def do_POST(self):
        _, protocol, mode = self.path.partition("?")[0].split("/")
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = rows_in(protocol, told)
        with LOCK:
            seen = SEEN[mode]
            seen["rows"] += len(rows)
            seen["requests"] += 1
            seen["tokens"].append(self.headers.get("Authorization"))
            NOW[mode] += 1
            seen["most_at_once"] = max(seen["most_at_once"], NOW[mode])
            count, at_once = seen["requests"], NOW[mode]
        try:
            self.act(mode, protocol, told, rows, count, at_once)
        finally:
            with LOCK:
                NOW[mode] -= 1

    def act(self, mode, protocol, told, rows, count, at_once):
        if mode.startswith("wild"):  # each of the first five requests goes wrong, and every third of those after
            time.sleep(0.02 * (count % 4))  # later ones overtake
            trouble = count if count <= 5 else 5 + count // 3 % 5 * (count % 3 == 0)
            if trouble % 5 == 1:
                return self.drop()
            if trouble % 5 == 2:
                return self.say(500, {"error": "internal"})
            if trouble % 5 == 3:
                return self.say(429, {"error": "too many"}, {"Retry-After": "0"})
            if trouble % 5 == 4:
                return self.half(answer(protocol, told, f(rows)))
        if mode == "dead":
            return self.say(503, {"error": "no one is here"})
        if mode == "dropping":
            return self.drop()
        if mode == "later" and count == 1:
            return self.say(429, {}, {"Retry-After": "1"})
        if mode == "tomorrow":
            return self.say(503, {}, {"Retry-After": "86400"})
        if mode == "drip":
            return self.drip()
        if mode == "third_fails" and count == 3:
            return self.say(400, {"error": "odd row"})
        if mode == "together":
            time.sleep(0.05)
        if mode.startswith("repeats"):
            said = f"{'x' * int(mode[10:])} {self.headers.get('Authorization')}"
            return self.say(int(mode[7:10]), {"error": said} if mode.endswith("5") else said.encode())
        if mode.startswith("status"):
            headers = {"Location": "http://127.0.0.1:1/elsewhere"} if mode == "status302" else {}
            return self.say(int(mode[6:]), {"error": f"you sent {self.headers.get('Authorization')}"}, headers)
        with LOCK:
            SEEN[mode]["answered"] += rows[:, 0].tolist() if rows.ndim == 2 else []
        return self.say(200, spoilt(mode, protocol, told, f(rows)))

    def say(self, status, told, headers=()):
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drop(self):
        """No answer: the connection is reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def half(self, told):
        """An answer that breaks off."""
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        self.close_connection = True

    def drip(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        try:
            for _ in range(60):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.05)
        except OSError:  # nobody listens any more
            pass
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Connections that were dropped on purpose."""


@cache
def started():
    """The address of a server that runs until this process ends."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    atexit.register(process.stdout.close)
    atexit.register(process.wait)
    atexit.register(process.terminate)
    return f"http://127.0.0.1:{process.stdout.readline().strip()}"


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()

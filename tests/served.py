"""A server of files on 127.0.0.1, which also answers as the Hugging Face hub does for `HfFileSystem`."""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit
from zlib import crc32

#: What the hub calls the repository of all files of a server, and a token that opens it.
REPOSITORY, TOKEN = "datasets/people/votes", "hf_secret-token"


class Server(ThreadingHTTPServer):
    """Serves ``files`` by their paths, and remembers what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}  # content by path: "/votes.csv"; of the hub, below "/hub/"
        self.status = {}  # of a path that is refused, and headers with it
        self.breaks = set()  # paths whose connection breaks half-way
        self.whole = set()  # paths that are sent whole only
        self.announced = {}  # bytes that are announced of a path, if others than are sent
        self.silent = set()  # paths that are never answered
        self.gated = False  # the repository asks for `TOKEN`
        self.addresses = set()  # as they were sent
        self.asked = []  # method, path, range
        self.stop = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def fetched(self):
        """What was sent of each path: ranges of bytes, or None for all."""
        return [(path, part) for method, path, part in self.asked if method == "GET"]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        self.server.addresses.add(self.path)
        path = unquote(urlsplit(self.path).path)
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        span = part and (int(part[1]), int(part[2]) + 1 if part[2] else None)
        self.server.asked.append((self.command, path, span))
        if path in self.server.silent:
            self.server.stop.wait(5)
            return
        if path in self.server.status:
            code, headers = self.server.status[path]
            self.send(code, b"", headers)
        elif api := re.fullmatch(rf"/api/{REPOSITORY}(/revision/main)?", path):
            self.send(200, json.dumps({"id": "people/votes", "sha": "0" * 40, "siblings": []}).encode())
        elif api := re.fullmatch(rf"/api/{REPOSITORY}/tree/main/?(.*)", path):
            self.send_tree(api[1])
        elif path.startswith("/api/"):
            self.send(401, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif file := re.fullmatch(rf"/{REPOSITORY}/resolve/main/(.*)", path):
            if self.server.gated and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.send(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
            else:
                self.send_file(f"/hub/{file[1]}", span)
        else:
            self.send_file(path, span)

    def send_tree(self, folder):
        entries = {}
        for path, content in self.server.files.items():
            name = path.removeprefix("/hub/")
            if path.startswith("/hub/") and name.startswith(f"{folder}/" if folder else ""):
                rest = name.removeprefix(folder).lstrip("/")
                if "/" in rest and "recursive=true" not in self.path.lower():
                    below = f"{folder}/{rest.split('/')[0]}".lstrip("/")
                    entries[below] = {"type": "directory", "path": below, "oid": "1" * 40}
                else:
                    entries[name] = {"type": "file", "path": name, "oid": "2" * 40, "size": len(content)}
        if entries:
            self.send(200, json.dumps(list(entries.values())).encode())
        else:
            self.send(404, b"{}", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "not there"})

    def send_file(self, path, span):
        content = self.server.files.get(path)
        if content is None:
            self.send(404, b"")
        elif path in self.server.breaks and self.command == "GET":
            self.send(200, content[: len(content) // 2], {"Content-Length": str(len(content))})
        elif path in self.server.announced and self.command == "HEAD":
            self.send(200, b"", {"Content-Length": str(self.server.announced[path])})
        elif span is None or path in self.server.whole:
            self.send(200, content)
        else:
            start, end = span[0], min(span[1] or len(content), len(content))
            self.send(206, content[start:end], {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"})

    def send(self, code, content, headers=()):
        self.send_response(code)
        own = {"Content-Length": str(len(content)), "ETag": f'"{crc32(content)}"'}
        for name, value in {**own, **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def served():
    """A server that answers in threads of its own."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()

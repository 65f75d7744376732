"""A real checkpoint behind a real web server, in the shape of the Hub.

Two nginx servers: one answers what the Hub answers, the other, under another host name, holds the
blobs that the first redirects to.  The second refuses a request that carries a token or comes without
the signature of the redirect.  All API answers are files, so that nothing here can react to its client.
"""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import socket
import subprocess
import time

REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
COMMIT = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
SIGNATURE = "only-the-redirect-knows-this"

CONFIGURATION = """
daemon off;
{user}
worker_processes 2;
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log {root}/access.log;
  client_body_temp_path {root}/tmp; proxy_temp_path {root}/tmp; fastcgi_temp_path {root}/tmp;
  uwsgi_temp_path {root}/tmp; scgi_temp_path {root}/tmp;
  sendfile on;

  server {{
    listen 127.0.0.1:{hub};
    root {root}/hub;
    etag off;
    default_type application/json;
    add_header X-Repo-Commit {commit} always;
    location = /api/models/{repository} {{ try_files /info.json =404; }}
    location ~ ^/api/models/{repository}/revision/(main|{commit})$ {{ try_files /info.json =404; }}
    location ~ ^/api/models/{repository}/tree/(main|{commit})$ {{ try_files /tree.json =404; }}
{files}
    location / {{
      add_header X-Error-Code EntryNotFound always;
      add_header X-Error-Message "Entry not found" always;
      add_header X-Repo-Commit {commit} always;
      return 404;
    }}
  }}

  server {{
    listen 127.0.0.1:{blobs};
    listen [::1]:{blobs} ipv6only=on;
    root {root}/blobs;
    default_type application/octet-stream;
    if ($http_authorization) {{ return 400; }}
    if ($arg_Signature != {signature}) {{ return 403; }}
    location / {{ try_files $uri =404; }}
  }}
}}
"""

# A regular file is answered at once; a large one by the way to its blob.
SMALL_FILE = """
    location ~ ^/{repository}/resolve/(main|{commit})/{pattern}$ {{
      add_header ETag '"{oid}"';
      add_header X-Repo-Commit {commit};
      default_type text/plain;
      try_files /files/{path} =404;
    }}
"""
LARGE_FILE = """
    location ~ ^/{repository}/resolve/(main|{commit})/{pattern}$ {{
      add_header X-Repo-Commit {commit} always;
      add_header X-Linked-Size {size} always;
      add_header X-Linked-ETag '"{sha256}"' always;
      add_header ETag '"{oid}"' always;
      return 302 http://localhost:{blobs}/{sha256}?Expires=4102444800&Signature={signature};
    }}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def git_blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def tree_entry(path, data):
    entry = {"type": "file", "path": path, "size": len(data), "oid": git_blob_id(data)}
    if path.endswith(".safetensors"):
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data),
                        "pointerSize": 133}
    return entry


def lay_out(root, model, facts):
    """Write the files that the two servers serve; returns the locations of the first."""
    for directory in ("hub/files", "blobs", "tmp"):
        (root / directory).mkdir(parents=True)
    entries, locations = [], []
    for path in sorted(p for p in model.iterdir() if p.is_file()):
        data = path.read_bytes()
        entry = tree_entry(path.name, data)
        entries.append(entry)
        large = entry.get("lfs")
        target = root / "blobs" / large["oid"] if large else root / "hub/files" / path.name
        os.symlink(path, target)
        template = LARGE_FILE if large else SMALL_FILE
        locations.append(template.format(pattern=re.escape(path.name), path=path.name,
                                         size=len(data), oid=entry["oid"],
                                         sha256=large and large["oid"], **facts))
    info = {"id": REPOSITORY, "modelId": REPOSITORY, "sha": COMMIT, "private": False, "gated": False,
            "disabled": False, "tags": ["safetensors"], "downloads": 1, "likes": 1,
            "siblings": [{"rfilename": entry["path"]} for entry in entries]}
    (root / "hub/info.json").write_text(json.dumps(info))
    (root / "hub/tree.json").write_text(json.dumps(entries))
    return "".join(locations)


def wait_for(port):
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nginx does not listen on port {port}")


@contextlib.contextmanager
def serve(model, root):
    """Serve the files in `model` until the block ends; gives the endpoint."""
    root = pathlib.Path(root)
    facts = dict(repository=REPOSITORY, commit=COMMIT, signature=SIGNATURE, blobs=free_port())
    hub = free_port()
    locations = lay_out(root, pathlib.Path(model), facts)
    # Started by root, the workers would be another user, who cannot read a temporary directory.
    user = "user root;" if os.geteuid() == 0 else ""
    (root / "nginx.conf").write_text(
        CONFIGURATION.format(root=root, user=user, hub=hub, files=locations, **facts))
    server = subprocess.Popen(["nginx", "-p", str(root), "-c", str(root / "nginx.conf"),
                               "-e", str(root / "error.log")])
    try:
        wait_for(hub)
        yield f"http://127.0.0.1:{hub}"
    finally:
        server.terminate()
        server.wait()

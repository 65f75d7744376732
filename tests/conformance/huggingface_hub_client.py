"""The reference client reads the test Hub without a complaint.

That is what shows that the test Hub, against which gridscope is tested, is true to the Hub: everything
huggingface_hub asks for it gets, in the form it expects, and the bytes are those on disk.

    huggingface_hub_client.py ENDPOINT REPO_ID DIRECTORY
    huggingface_hub_client.py --server TEST_HUB

DIRECTORY holds what the endpoint serves as REPO_ID. With --server the script makes a small model,
serves it with that program and reads it back.
"""
import argparse
import contextlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import warnings

# To be set before huggingface_hub is imported: the plain Hub protocol, nothing sent elsewhere.
os.environ.update(HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1",
                  HF_HUB_DISABLE_PROGRESS_BARS="1", HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
try:
    import huggingface_hub
    from huggingface_hub import errors
except ImportError:
    print("skipped: huggingface_hub is not installed")
    sys.exit(77)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_model(directory):
    directory.mkdir(parents=True)
    write_safetensors(directory / "model.safetensors",
                      {"a.weight": [1.0, 2.0], "b.weight": list(range(50_000))})
    (directory / "config.json").write_text('{"model_type": "tiny"}')
    (directory / "license.txt").write_text("free\n")
    (directory / "empty.txt").write_text("")
    (directory / "sub").mkdir()
    (directory / "sub" / "notes with spaces.json").write_text("[]")


@contextlib.contextmanager
def served(program, root):
    server = subprocess.Popen([program, "--root", str(root)], stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r} instead of {wanted!r}")
    print(f"ok: {what}")


def expect_error(what, kind, action):
    try:
        action()
    except kind:
        print(f"ok: {what}")
        return
    sys.exit(f"{what}: no {kind.__name__}")


def check_api(api, repo_id, contents):
    info = api.model_info(repo_id)
    expect("model_info names the files", sorted(s.rfilename for s in info.siblings), sorted(contents))
    expect("a commit has 40 digits", len(info.sha), 40)
    detailed = api.model_info(repo_id, revision=info.sha, files_metadata=True)
    expect("model_info tells sizes", {s.rfilename: s.size for s in detailed.siblings},
           {path: len(data) for path, data in contents.items()})
    tree = [e for e in api.list_repo_tree(repo_id, recursive=True)
            if isinstance(e, huggingface_hub.hf_api.RepoFile)]
    expect("list_repo_tree tells sizes", {e.path: e.size for e in tree},
           {path: len(data) for path, data in contents.items()})
    expect("list_repo_refs names main", [b.name for b in api.list_repo_refs(repo_id).branches],
           ["main"])
    some = sorted(contents)[0]
    expect("get_paths_info leaves unknown paths out",
           [e.path for e in api.get_paths_info(repo_id, [some, "no/such/file"])], [some])
    expect("file_exists", api.file_exists(repo_id, some), True)
    expect("file_exists, for none", api.file_exists(repo_id, "no-such-file"), False)
    return info.sha


def check_downloads(api, repo_id, commit, contents, cache):
    for path, data in contents.items():
        local = api.hf_hub_download(repo_id, path, cache_dir=cache)
        expect(f"hf_hub_download {path}", pathlib.Path(local).read_bytes(), data)
        expect(f"{path} lies in the snapshot", commit in local, True)
    snapshot = api.snapshot_download(repo_id, cache_dir=cache + "-snapshot")
    found = {str(p.relative_to(snapshot)) for p in pathlib.Path(snapshot).rglob("*") if p.is_file()}
    expect("snapshot_download", found, set(contents))


def check_safetensors(api, repo_id, contents):
    if "model.safetensors" not in contents:
        return
    metadata = api.get_safetensors_metadata(repo_id)
    data = contents["model.safetensors"]
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    header.pop("__metadata__", None)
    got = metadata.files_metadata["model.safetensors"].tensors
    expect("get_safetensors_metadata", {n: list(t.data_offsets) for n, t in got.items()},
           {n: t["data_offsets"] for n, t in header.items()})


def check_file_system(endpoint, repo_id, contents):
    files = huggingface_hub.HfFileSystem(endpoint=endpoint, token=False)
    for path, data in contents.items():
        with files.open(f"{repo_id}/{path}", "rb") as file:
            expect(f"HfFileSystem reads {path}", file.read(), data)
    largest = max(contents, key=lambda path: len(contents[path]))
    middle = len(contents[largest]) // 2
    with files.open(f"{repo_id}/{largest}", "rb", block_size=1024) as file:
        file.seek(middle)
        expect("HfFileSystem reads a range", file.read(100), contents[largest][middle:middle + 100])
    expect("HfFileSystem lists", sorted(p.removeprefix(repo_id + "/") for p in files.find(repo_id)),
           sorted(contents))


def check_refusals(api, repo_id, cache):
    expect_error("an unknown file", errors.EntryNotFoundError,
                 lambda: api.hf_hub_download(repo_id, "no-such-file", cache_dir=cache))
    expect_error("an unknown revision", errors.RevisionNotFoundError,
                 lambda: api.model_info(repo_id, revision="no-such-revision"))
    # A 401; the client calls it RepositoryNotFoundError when the endpoint is https.
    expect_error("an unknown repository", errors.HfHubHTTPError,
                 lambda: api.model_info("no-such/repository"))


def check(endpoint, repo_id, directory):
    contents = {str(p.relative_to(directory)): p.read_bytes()
                for p in sorted(directory.rglob("*")) if p.is_file()}
    api = huggingface_hub.HfApi(endpoint=endpoint, token=False)
    with tempfile.TemporaryDirectory() as cache, warnings.catch_warnings():
        warnings.simplefilter("error")
        commit = check_api(api, repo_id, contents)
        check_downloads(api, repo_id, commit, contents, cache + "/hub")
        check_safetensors(api, repo_id, contents)
        check_file_system(endpoint, repo_id, contents)
        check_refusals(api, repo_id, cache + "/hub")
    print(f"huggingface_hub {huggingface_hub.__version__} read {repo_id} without a complaint")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("endpoint", nargs="?")
    parser.add_argument("repo_id", nargs="?")
    parser.add_argument("directory", nargs="?", type=pathlib.Path)
    parser.add_argument("--server", help="path of the test_hub program")
    arguments = parser.parse_args()
    if arguments.directory is not None:
        check(arguments.endpoint, arguments.repo_id, arguments.directory)
    elif arguments.server is not None:
        with tempfile.TemporaryDirectory() as root:
            model = pathlib.Path(root) / "tiny-org" / "tiny-model"
            make_model(model)
            with served(arguments.server, root) as endpoint:
                check(endpoint, "tiny-org/tiny-model", model)
    else:
        parser.error("name an endpoint, a repository and its directory, or --server")


if __name__ == "__main__":
    main()

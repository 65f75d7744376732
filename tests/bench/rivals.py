"""What a user would run instead.

    rivals.py huggingface_hub|hf_mem REPOSITORY   inspect it, at the endpoint in HF_ENDPOINT
    rivals.py numpy SOURCE_URL BUILD_URL          compare the one weight of two safetensors files
"""
import asyncio
import importlib
import json
import os
import sys
import time
import urllib.parse
import urllib.request


def by_huggingface_hub(repository):
    import huggingface_hub
    metadata = huggingface_hub.HfApi(token=False).get_safetensors_metadata(repository)
    return sum(len(file.tensors) for file in metadata.files_metadata.values())


def by_hf_mem(repository):
    """hf-mem knows one Hub only: its requests are sent on to the endpoint."""
    import httpx2
    run = importlib.import_module("hf_mem.run")  # the package has a function of that name too

    endpoint = urllib.parse.urlsplit(os.environ["HF_ENDPOINT"])

    class ToTheEndpoint(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request):
            if request.url.host == "huggingface.co":
                request.url = request.url.copy_with(
                    scheme=endpoint.scheme, host=endpoint.hostname, port=endpoint.port)
                request.headers["Host"] = endpoint.netloc
            return await super().handle_async_request(request)

    class Client(httpx2.AsyncClient):
        def __init__(self, limits, **more):
            super().__init__(transport=ToTheEndpoint(limits=limits), **more)

    run.httpx2.AsyncClient = Client
    return asyncio.run(run.arun(model_id=repository))


def read_tensors(url):
    """Name suffix -> bytes of each tensor, by range as the published check reads them."""
    def read(first, last):
        request = urllib.request.Request(url, headers={"Range": f"bytes={first}-{last}"})
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    data = 8 + int.from_bytes(read(0, 7), "little")
    header = json.loads(read(8, data - 1))
    return {name.rpartition(".")[2]: read(data + entry["data_offsets"][0],
                                          data + entry["data_offsets"][1] - 1)
            for name, entry in header.items() if name != "__metadata__"}


def by_numpy(source_url, build_url):
    """Whole arrays at a time. Prints the seconds of arithmetic and the counts."""
    import numpy as np
    source, build = read_tensors(source_url), read_tensors(build_url)
    start = time.perf_counter()
    rows, columns = np.frombuffer(build["weight_shape"], np.int64)

    def bf16(data):
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)

    weights = bf16(source["weight"]).reshape(rows, columns)
    scales = np.repeat(bf16(build["weight_scale"]).reshape(rows, -1), 32, axis=1)
    words = np.frombuffer(build["weight_packed"], np.uint32)
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    levels = (words[:, None] >> shifts & 15).astype(np.int8).reshape(rows, columns) - 8
    bits = (levels * scales).view(np.uint32)
    dequantized = (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).view(np.float32)
    same = dequantized == weights
    error = np.abs(dequantized - weights)
    moved = np.count_nonzero(error / np.abs(scales) > 0.5)
    groups = np.count_nonzero(same.reshape(-1, 32).all(axis=1))
    error.max(), error.mean()
    print(time.perf_counter() - start, groups, np.count_nonzero(same), moved)


def main(rival, *arguments):
    by = {"huggingface_hub": by_huggingface_hub, "hf_mem": by_hf_mem, "numpy": by_numpy}[rival]
    found = by(*arguments)
    if isinstance(found, int):
        print(f"{found} tensors", end="")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Inspect a repository with what a user would run instead, at the endpoint in HF_ENDPOINT.

    rivals.py huggingface_hub|hf_mem REPOSITORY
"""
import asyncio
import importlib
import os
import sys
import urllib.parse


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


if __name__ == "__main__":
    rival, repository = sys.argv[1:]
    found = {"huggingface_hub": by_huggingface_hub, "hf_mem": by_hf_mem}[rival](repository)
    if isinstance(found, int):
        print(f"{found} tensors", end="")

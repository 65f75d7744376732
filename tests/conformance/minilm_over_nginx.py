"""all-MiniLM-L6-v2 over nginx: gridscope finds what the reference library finds in the same file.

    minilm_over_nginx.py GRIDSCOPE MODEL_DIRECTORY
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import huggingface_hub
import safetensors

import nginx_hub

GRIDSCOPE, MODEL = sys.argv[1], pathlib.Path(sys.argv[2])
# What the reference reader calls the types, and how wide they are.
WIDTHS = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1}


def by_reference():
    """Tensor name -> (dtype, shape, bytes)."""
    tensors = {}
    with safetensors.safe_open(MODEL / "model.safetensors", framework="numpy") as file:
        for name in file.keys():
            part = file.get_slice(name)
            shape, elements = part.get_shape(), 1
            for extent in shape:
                elements *= extent
            tensors[name] = (part.get_dtype(), shape, elements * WIDTHS[part.get_dtype()])
    return tensors


class OverNginx(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.endpoint = cls.enterClassContext(nginx_hub.serve(MODEL, pathlib.Path(cls.directory) / "n"))
        cls.reference = by_reference()

    def gridscope(self, *arguments, token=""):
        environment = dict(os.environ, HF_ENDPOINT=self.endpoint, HF_TOKEN=token,
                           HF_HOME=self.directory + "/home",
                           XDG_CACHE_HOME=self.directory + "/cache")
        command = [GRIDSCOPE, "inspect", "hf://" + nginx_hub.REPOSITORY, "--format", "json", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(nginx_hub.SIGNATURE, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_totals_are_those_of_the_reference(self):
        totals = self.gridscope()["totals"]
        self.assertEqual(totals["tensors"], len(self.reference))
        self.assertEqual(totals["tensor_bytes"], sum(t[2] for t in self.reference.values()))
        self.assertEqual(totals["file_bytes"], (MODEL / "model.safetensors").stat().st_size)

    def test_dtypes_are_those_of_the_reference(self):
        expected, found = {}, {}
        for dtype, _, _ in self.reference.values():
            expected[dtype] = expected.get(dtype, 0) + 1
        for part in self.gridscope()["parts"]:
            for dtype, tensors in part["dtypes"].items():
                found[dtype] = found.get(dtype, 0) + tensors
        self.assertEqual(found, expected)

    def test_every_tensor_is_that_of_the_reference(self):
        found = {t["name"]: (t["dtype"], t["shape"], t["bytes"])
                 for t in self.gridscope("--tensors")["tensors"]}
        self.assertEqual(found, self.reference)

    def test_parameters_are_the_elements_of_floating_point_tensors(self):
        expected = sum(t[2] // WIDTHS[t[0]] for t in self.reference.values() if "F" in t[0])
        self.assertEqual(self.gridscope()["totals"]["parameters"], expected)

    def test_commit_is_pinned(self):
        model = self.gridscope()["model"]
        self.assertEqual((model["commit"], model["kind"]), (nginx_hub.COMMIT, "hub"))

    def test_a_token_stays_with_the_endpoint(self):
        # The second host answers 400 to a request with Authorization.
        self.gridscope("--no-cache", token="hf_secret")

    def test_a_second_run_reads_nothing_from_the_network(self):
        def reads():
            log = pathlib.Path(self.directory) / "n/access.log"
            return log.read_text().count("GET /" + nginx_hub.REPOSITORY)

        self.gridscope()
        before = reads()
        self.gridscope()
        self.assertEqual(reads(), before)


class TheReferenceClient(unittest.TestCase):
    """huggingface_hub takes the same servers for a Hub."""

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        endpoint = cls.enterClassContext(nginx_hub.serve(MODEL, pathlib.Path(cls.directory) / "n"))
        cls.api = huggingface_hub.HfApi(endpoint=endpoint, token=False)
        cls.endpoint = endpoint

    def test_model_info(self):
        info = self.api.model_info(nginx_hub.REPOSITORY)
        self.assertEqual(info.sha, nginx_hub.COMMIT)

    def test_tree(self):
        paths = {entry.path: entry.size for entry in self.api.list_repo_tree(nginx_hub.REPOSITORY)}
        self.assertEqual(paths["model.safetensors"], (MODEL / "model.safetensors").stat().st_size)

    def test_download(self):
        path = huggingface_hub.hf_hub_download(nginx_hub.REPOSITORY, "model.safetensors",
                                               endpoint=self.endpoint, token=False,
                                               cache_dir=self.directory + "/cache")
        self.assertIn(nginx_hub.COMMIT, path)
        self.assertEqual(pathlib.Path(path).read_bytes(), (MODEL / "model.safetensors").read_bytes())

    def test_safetensors_metadata(self):
        metadata = self.api.get_safetensors_metadata(nginx_hub.REPOSITORY)
        found = {name: (t.dtype, t.shape)
                 for name, t in metadata.files_metadata["model.safetensors"].tensors.items()}
        self.assertEqual(found, {name: t[:2] for name, t in by_reference().items()})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

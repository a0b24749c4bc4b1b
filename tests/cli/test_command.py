# SPDX-License-Identifier: Apache-2.0
"""The command as a user meets it: help, results, one clear line and an exit code for every mistake, no half-written files."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from openvta.cli.main import EXIT_DEVICE, EXIT_NO, EXIT_USAGE, VERBS, main
from openvta.spec import Program, hash_text, load_config
from openvta.spec.bundle import Bundle, Segment
from openvta.spec.emit import views

MODELS = Path(__file__).parents[1] / "data" / "models"
MODEL = MODELS / "resnet8_mnist_pot.onnx"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled digit network."""
    path = tmp_path_factory.mktemp("bundle") / "resnet8.bundle"
    assert main(["compile", str(MODEL), "--strict", "-o", str(path)]) == 0
    return path


def one_line(capsys: Capture) -> str:
    """What went to standard error: exactly one line that starts with the command's name."""
    text = capsys.readouterr().err
    lines = [line for line in text.splitlines() if not line.startswith("[")]
    assert len(lines) == 1, text
    assert lines[0].startswith("openvta: ")
    assert "Traceback" not in text
    return lines[0]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"example:\n  openvta {verb}" in text


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom openvta.cli import main\ntry:\n main(['--help'])\nexcept SystemExit:\n pass\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'rich', 'openvta.spec'} & set(sys.modules)\nsys.exit(', '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert all(verb in done.stdout for verb in VERBS)


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["compile"], ["run", "x", "--images", "many"], ["bench", "nothing"]]
)
def test_usage_errors(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == EXIT_USAGE
    assert "usage: openvta" in capsys.readouterr().err


def test_compile_shows_where_everything_went(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "m.bundle"
    assert main(["compile", str(MODEL), "--config", "tiny", "-o", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["config_hash"] == hash_text(load_config("tiny")) == Bundle.load(out).config_hash
    assert {"name", "where", "macs", "reason"} <= set(facts["layers"][0])


def test_run_on_the_simulator(bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    digits = np.load(MODELS / "mnist_subset.npz")["test_x"].reshape(-1, 28, 28)[:3]
    inputs = tmp_path / "digits.npz"
    np.savez(inputs, input=((digits.astype(np.float32) - 128) / 128)[:, None])
    out = tmp_path / "logits.npz"
    assert main(["run", str(bundle), "--input", str(inputs), "--images", "2", "--out", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["images"] == 2
    assert facts["counters"]["gemm_uops"] > 0
    assert np.load(out)["logits"].shape == (2, 10)
    assert main(["run", str(bundle), "--random", "1", "--check"]) == 0
    assert "1 images" in capsys.readouterr().out


def test_text_of_a_bundle_assembles_to_its_bytes(bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    text, binary = tmp_path / "m.s", tmp_path / "m.bin"
    assert main(["disasm", str(bundle), "-o", str(text)]) == 0
    assert main(["asm", str(text), "-o", str(binary)]) == 0
    with zipfile.ZipFile(bundle) as archive:
        assert binary.read_bytes() == archive.read("program-0.bin")
    capsys.readouterr()
    assert main(["disasm", str(binary), "--config", "default"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(";")]
    assert shown == [line for line in text.read_text().splitlines() if not line.startswith(";")]


def test_spec_views(tmp_path: Path, capsys: Capture) -> None:
    assert main(["spec", "emit", "--config", "tiny", "--out", str(tmp_path)]) == 0
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == views(load_config("tiny"))
    assert main(["spec", "check", "--config", "tiny", "--out", str(tmp_path)]) == 0
    (tmp_path / "isa.md").write_text("edited")
    (tmp_path / "resolved.json").unlink()
    assert main(["spec", "check", "--config", "tiny", "--out", str(tmp_path)]) == EXIT_NO
    text = capsys.readouterr().out
    assert "isa.md: differs from the specification" in text
    assert "resolved.json: missing" in text
    assert main(["spec", "emit", "--config", "tiny"]) == EXIT_USAGE
    assert "give --out" in one_line(capsys)


# mistakes -----------------------------------------------------------------------------------------


def test_missing_and_damaged_files(bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    cut = tmp_path / "cut.bundle"
    cut.write_bytes(bundle.read_bytes()[:5000])
    text = tmp_path / "bad.s"
    text.write_text(f".config default {hash_text(load_config('default'))}\nfinish\ngemm uop_end=99999\n")
    plain = tmp_path / "plain.s"
    plain.write_text("finish\n")
    odd = tmp_path / "odd.bin"
    odd.write_bytes(b"123")
    for arguments, words in (
        (["run", str(tmp_path / "none"), "--random", "1"], "none: No such file"),
        (["run", str(cut), "--random", "1"], "cut.bundle: not a bundle (a zip file), or cut short"),
        (["disasm", str(cut)], "cut short"),
        (["disasm", str(odd), "--config", "default"], "program of 3 bytes: must be a multiple of 16"),
        (["asm", str(text), "-o", str(tmp_path / "x.bin")], "line 3: uop_end = 99999: must be a number, 0..16383"),
        (["asm", str(plain), "-o", str(tmp_path / "x.bin")], "names no configuration: give --config"),
        (["compile", str(tmp_path / "none.onnx")], "none.onnx"),
        (["compile", str(cut), "-o", str(tmp_path / "x.bundle")], "cut.bundle"),
        (["compile", str(MODEL), "--config", "huge"], "neither a file nor one of"),
        (["elaborate", "--config", "huge", "--out", str(tmp_path / "v")], "neither a file nor one of"),
    ):
        assert main(arguments) == EXIT_USAGE, arguments
        assert words in one_line(capsys), arguments
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(("x.", ".", "v"))], "nothing half-written"


def test_inputs_that_do_not_fit(bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, input=np.zeros((1, 28, 28, 1), np.float32))
    other = tmp_path / "other.npz"
    np.savez(other, image=np.zeros((1, 1, 28, 28), np.float32))
    junk = tmp_path / "junk.npz"
    junk.write_bytes(b"junk")
    for arguments, words in (
        (
            ["--input", str(wrong)],
            "input 'input': shape = (1, 28, 28, 1): must be [N, 1, 28, 28]; this looks like N, H, W, C",
        ),
        (["--input", str(other)], "has no such array, only image"),
        (["--input", str(junk)], "cannot be read as .npy or .npz"),
        ([], "give --input FILE or --random SEED"),
        (["--random", "1", "--device", "fsym"], "device = 'fsym': must be one of"),
    ):
        assert main(["run", str(bundle), *arguments]) == EXIT_USAGE, arguments
        assert words in one_line(capsys), arguments


def unsupported(path: Path) -> Path:
    """A quantized model with an operator the accelerator does not have."""
    scale = [helper.make_tensor("s", TensorProto.FLOAT, [], [0.1]), helper.make_tensor("z", TensorProto.INT8, [], [0])]
    graph = helper.make_graph(
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q1"),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="d1"),
            helper.make_node("Erf", ["d"], ["e"], name="the_erf"),
            helper.make_node("QuantizeLinear", ["e", "s", "z"], ["r"], name="q2"),
            helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"], name="d2"),
        ],
        "odd",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        scale,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_strict_names_the_node(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "m.bundle"
    model = unsupported(tmp_path / "odd.onnx")
    assert main(["compile", str(model), "--strict", "-o", str(out)]) == EXIT_USAGE
    assert "the_erf" in capsys.readouterr().err
    assert not out.exists()


def test_debug_shows_where(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"):
        main(["--debug", "run", str(tmp_path / "none"), "--random", "1"])
    with pytest.raises(ValueError, match="No such file"):
        main(["run", "--debug", str(tmp_path / "none"), "--random", "1"])


def test_a_device_error_has_its_own_code(bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    """The first push is taken out of the program: the run ends on the watchdog."""
    good = Bundle.load(bundle)
    words = list(good.segments[0].program.words)
    at = next(n for n, word in enumerate(words) if word >> 5 & 3)
    words[at] &= ~(3 << 5)
    broken = Bundle(
        **{**vars(good), "segments": (Segment(Program(good.config, tuple(words)), good.segments[0].insn_offset),)}
    )
    broken.save(tmp_path / "broken.bundle")
    assert main(["run", str(tmp_path / "broken.bundle"), "--random", "1"]) == EXIT_DEVICE
    assert "deadlock" in one_line(capsys)


@pytest.mark.parametrize("tool", ["java", "g++", "make", "perl"])
def test_doctor_says_what_to_do(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """A PATH with every tool but one."""
    import shutil

    for name in ("java", "g++", "make", "perl", "sbt", "mvn", "git"):
        found = shutil.which(name)
        if found is not None and name != tool:
            (tmp_path / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor", "--json"]) == EXIT_NO
    findings = {item["name"]: item for item in json.loads(capsys.readouterr().out)["findings"]}
    assert not findings[tool]["ok"]
    assert "apt-get install" in findings[tool]["cure"]

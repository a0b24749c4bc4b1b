# SPDX-License-Identifier: Apache-2.0
"""The proof engine on small circuits whose answers are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from openvta.sim.formal import aig, harness, prove, yosys
from openvta.sim.formal.errors import FormalError
from openvta.sim.formal.unroll import Unrolling

COUNTER = """
module harness(input clock, input go, input [2:0] free, output m_go, output p_low, output p_ten, output p_odd);
  reg [3:0] count = 0;
  always @(posedge clock) if (go) count <= count == 9 ? 4'd0 : count + 4'd1;
  assign m_go = 1;
  assign p_low = count < 10;
  assign p_ten = count != 9;
  assign p_odd = count != 13;
endmodule
"""


def circuit_of(folder: Path, text: str) -> aig.Aig:
    (folder / "h.sv").write_text(text, "utf-8")
    commands = ["read_verilog -sv h.sv", "prep -top harness", "techmap", "dffunmap", "aigmap", "opt_clean"]
    yosys.run([*commands, "write_aiger -ascii -symbols h.aag"], folder, makes=["h.aag"], what="test")
    return aig.read(folder / "h.aag")


def test_what_holds_is_proved_and_what_fails_is_refuted(tmp_path: Path) -> None:
    circuit = circuit_of(tmp_path, COUNTER)
    proofs = {p.name: p for p in prove.prove(circuit, steps=1, depth=20, seconds=20, folder=tmp_path)}
    assert proofs["p_low"].proved
    assert proofs["p_odd"].proved, "needs p_low, or an invariant"
    assert (proofs["p_ten"].method, proofs["p_ten"].depth) == ("counterexample", 10)


def test_a_reachability_proof_is_checked_by_another_solver(tmp_path: Path) -> None:
    circuit = circuit_of(tmp_path, COUNTER)
    one = aig.single(circuit, circuit.outputs["p_odd"] ^ 1, [])
    bits = [next(k for k, latch in enumerate(one.latches) if latch.name.endswith(f"[{n}]")) for n in range(4)]
    ten_or_more = [[(bits[3], True), (bits[1], True)], [(bits[3], True), (bits[2], True)]]
    assert prove.certified(one, ten_or_more)
    assert not prove.certified(one, ten_or_more[:1]), "13 is not excluded"
    assert not prove.certified(one, [*ten_or_more, [(bits[3], True)]]), "8 is reached"
    assert not prove.certified(one, [*ten_or_more, [(bits[0], False), (bits[1], False)]]), "the first state is excluded"


def test_the_written_circuit_is_the_circuit(tmp_path: Path) -> None:
    """The same counterexample length before and after the change to latches that start with zero."""
    circuit = circuit_of(tmp_path, COUNTER.replace("count = 0", "count = 6"))
    one = aig.single(circuit, circuit.outputs["p_ten"] ^ 1, [circuit.outputs["m_go"]])
    for checked, bad in ((circuit, circuit.outputs["p_ten"] ^ 1), (one, one.outputs["bad"])):
        with Unrolling(checked, initial=True) as runs:
            assert [runs.solve([runs.at(frame, bad)]) for frame in range(5)] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("// p_a: x\nmodule harness(output p_a, output c_a);\nendmodule\n", "dut"),
        ("// dut: M\n// p_a: x\nmodule harness(output p_a);\nendmodule\n", "c_a"),
        ("// dut: M\nmodule harness(output p_b, output c_b);\nendmodule\n", "p_b"),
        ("// dut: M\n// duct: N\nmodule harness(output p_b, output c_b);\nendmodule\n", "duct"),
    ],
)
def test_a_harness_that_says_too_little_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "h.sv"
    path.write_text("// SPDX-License-Identifier: Apache-2.0\n" + text, "utf-8")
    with pytest.raises(FormalError, match=said):
        harness.read(path)


def test_a_failing_script_says_so(tmp_path: Path) -> None:
    with pytest.raises(FormalError, match="nonsense"):
        yosys.run(["nonsense"], tmp_path, makes=["x"], what="test")

# SPDX-License-Identifier: Apache-2.0
"""Reports on a run: waterfall, roofline, timeline; in the terminal, as a page, and for Perfetto.

Everything is drawn from a run record (``openvta.cli.timeline.run_record``), which a benchmark's JSON file carries too.
"""

from __future__ import annotations


class ReportError(RuntimeError):
    """A file that no report can be made of."""

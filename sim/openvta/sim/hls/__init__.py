# SPDX-License-Identifier: Apache-2.0
"""The HLS kernel run in this process: built with an ordinary C++ compiler, one core a device."""

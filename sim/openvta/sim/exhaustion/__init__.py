# SPDX-License-Identifier: Apache-2.0
"""Arithmetic that is tried out rather than sampled: every pair of a multiplier cell, hundreds of millions of requantizations."""

# SPDX-License-Identifier: Apache-2.0
"""Faults put into a copy of the RTL on purpose, to see what the tests would catch."""

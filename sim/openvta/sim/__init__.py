# SPDX-License-Identifier: Apache-2.0
"""Simulators: functional (fsim) and RTL co-simulation (cosim), their memory and traces."""

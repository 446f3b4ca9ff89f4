"""Solving: one environment or many in parallel, the reasons for conflicts, and the builds that only time stamps
choose."""

"""Benchmarks of real node processes on this machine."""

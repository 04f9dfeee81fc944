"""Drivers reach devices: one module or folder per technology, all behind one small interface."""

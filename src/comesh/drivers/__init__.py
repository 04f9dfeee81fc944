"""How devices are reached: one module or folder per technology, all behind one small interface."""

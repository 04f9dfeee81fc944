"""What several experiments measure with: presets, recorded meshes, delays."""

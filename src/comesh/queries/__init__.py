"""What people ask of a mesh and order in it, and what nodes ask each other on their behalf.

- `requests`, `answers`: the Structs, light enough for every command to import
- `table`: which function answers what, with its bounds; `reads`, `orders`, `changes`: those functions
- `mesh`: how a handler asks the leader of a group, or all nodes; `view`: what it needs of its own node
- `node_reads`, `peers`: what one node says of itself, and the frames it travels in
- `news`: what happens, for those who follow it
"""

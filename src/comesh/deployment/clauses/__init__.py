"""Clauses: the conditions of a document, such as `temp.c > 26 && !window.open`.

In order: `parser` makes a tree of the text, with the place of every part; `vocabulary` says what a clause can
name; `compiler` checks the types of the tree and, in the same walk, makes the functions that evaluate it;
`operations` has one row per operator and function, which both go by; `ranges` finds conditions that never
change. The language is a part of the Common Expression Language (docs/deployment.md, decision 32).

A clause is true, false or unknown. Unknown (None) follows three-valued logic: `false && unknown` is false,
`true || unknown` is true, on either side, and everything else that needs an unknown is unknown. A reading
that is missing, stale, not finite or not of its type is unknown, and so is what divides a whole number by
zero, leaves 64 bits, or puts 0.0 / 0.0 in order.
"""

"""Repairs: the single changes of a wrong program that make its output right.

A change that makes every sample right is an experiment, not a guess: it names the line and what is wrong there. All
changes are compiled into one program, each behind a switch (mutant schemata: Untch, Offutt and Harrold, "Mutation
Analysis Using Mutant Schemata", ISSTA 1993), so that a try costs one run and no build. May import `cpp`, `findings`.

`scopes` reads the types of expressions, `changes` lists the alternatives of one expression or statement, `schemata`
numbers the likeliest of them and writes the program that has them all.
"""

"""What goes into a tree, and the ledger that takes it out again."""

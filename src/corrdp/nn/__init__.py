"""Neural networks whose noise follows what each change of a record can move (THEORY T12)."""

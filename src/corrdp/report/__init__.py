"""Certificate and results for people; summarised first, rendered second."""

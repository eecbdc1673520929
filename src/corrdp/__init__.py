"""corrdp."""

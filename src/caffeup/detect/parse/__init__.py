"""Pure parsers: text in, value out."""

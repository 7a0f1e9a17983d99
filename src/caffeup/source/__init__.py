"""Where trees come from, and what one is."""

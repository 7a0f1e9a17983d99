"""Who holds the GPUs, how much is free, what each figure means, and who may be ended: decisions about values."""

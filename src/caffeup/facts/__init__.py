"""What is known about GPUs, toolkits, libraries, forks and failures: data with a source per row, and questions to ask of it."""

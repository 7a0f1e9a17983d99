"""System packages: what is missing, what they are called here, and the one command that installs them."""

"""What each layer makes of the shapes of its bottoms: one function a family, all of them in ``table.RULES``."""

"""A plan as a script, a Dockerfile or an Apptainer definition that does without caffeup. Pure."""

"""The only place that wires host, facts, stages and output together."""

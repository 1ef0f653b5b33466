"""The triggers file: what starts jobs, as the operator writes it (Q 5.1)."""

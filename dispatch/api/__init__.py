"""The fleet for other programs: JSON below /api/ and metrics for Prometheus; everything here only reads."""

"""Risk-based calibration: of pooled records, and over communication networks."""

"""Log formats to series, canonical names, trends, change points, forecasts: pure."""

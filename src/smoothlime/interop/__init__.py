"""smoothlime for those who have another library in use: the same calls, with our slopes behind them."""

"""What a release costs: Gaussian DP, subsampling, budgets, ledger and certificate."""

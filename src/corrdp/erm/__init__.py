"""Empirical risk minimisation: losses, sensitivities and the noisy training loop."""

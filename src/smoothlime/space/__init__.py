"""What "near" means: neighbourhoods, their covariances, and tables as points."""

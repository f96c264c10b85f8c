"""The estimators, one a file."""

"""The service: what it keeps, its API and its console; needs the extra `eqsep[serve]`."""

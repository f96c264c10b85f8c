"""The service on the network: routes behind `guards` in `app`, on a socket in `server`."""

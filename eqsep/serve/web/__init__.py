"""The service on the network: `app` puts the routes of `api`, `inference` and the console behind
`guards`, and `server` puts it on a socket.
"""

"""The service on the network: the API, its guards, and the protocols that clients know.

| module | what it knows |
|---|---|
| `app` | all routes behind one guard, and health |
| `server` | the application on a socket |
| `guards` | hosts, tokens and roles, forged requests, rates, sizes, a browser's session |
| `limits` | how much one caller may ask, and the answer when a request is refused |
| `service` | what the routes share: micro-batches, figures for Prometheus |
| `rows` | rows in JSON, CSV and Arrow, each checked alone |
| `api` | the API of those who score, who judge, who run it |
| `inference` | the Open Inference Protocol V2, and MLflow's scoring server |
"""

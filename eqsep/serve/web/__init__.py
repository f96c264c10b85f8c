"""The service on the network: the API, its guards, and the protocols that clients know.

| module | what it knows |
|---|---|
| `app` | all routes behind one guard, and what is said when something goes wrong |
| `guards` | hosts, tokens and roles, forged requests, rates, sizes, what browsers may do |
| `limits` | how much one caller may ask, and how often |
| `session` | a browser's token, in a cookie |
| `service` | what the routes share |
| `rows`, `arrow` | rows in JSON, CSV and Arrow, each checked alone |
| `batching` | requests that come together are scored together |
| `scoring`, `review`, `administration` | the API of those who score, who judge, who run it |
| `inference` | the Open Inference Protocol V2, and MLflow's scoring server |
| `metrics` | figures for Prometheus |
"""

"""What `eqsep demo` shows, as plain records: computed here, printed and drawn elsewhere.

| module | what it shows |
|---|---|
| `payments` | a detector of card payments that knows one kind of anomaly, and other methods |
| `arrivals` | the same payments as they arrive at a service |
| `separation` | the theory: XOR by one neuron, an unseen circle, closing numbers |
"""

from eqsep.demo.payments import PaymentsDemo, run_payments
from eqsep.demo.separation import TheoryDemo, run_theory

__all__ = ["PaymentsDemo", "TheoryDemo", "run_payments", "run_theory"]

"""What `eqsep demo` shows, as plain records: computed here, printed and drawn elsewhere.

| module | what it shows |
|---|---|
| `payments` | a detector on card payments that knows one kind of anomaly, beside other methods |
| `theory` | XOR by one neuron, an unseen circle, closing numbers |
"""

from eqsep.demo.payments import PaymentsDemo, run_payments
from eqsep.demo.theory import TheoryDemo, run_theory

__all__ = ["PaymentsDemo", "TheoryDemo", "run_payments", "run_theory"]

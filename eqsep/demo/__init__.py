"""What `eqsep demo` shows, as plain records: computed here, printed and drawn elsewhere."""

from eqsep.demo.payments import PaymentsDemo, run_payments
from eqsep.demo.separation import TheoryDemo, run_theory

__all__ = ["PaymentsDemo", "TheoryDemo", "run_payments", "run_theory"]

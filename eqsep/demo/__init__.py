"""What `eqsep demo` shows, as plain records: computed here, printed and drawn elsewhere."""

from eqsep.demo.payments import PaymentsDemo, run_payments

__all__ = ["PaymentsDemo", "run_payments"]

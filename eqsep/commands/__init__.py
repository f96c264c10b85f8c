"""What the larger commands do and show; `eqsep.cli` declares their options."""

"""Where state lives: the state directory, its secret, the audit ledger."""

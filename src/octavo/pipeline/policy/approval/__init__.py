"""The last act of the policy: whether a human has to be asked, and how one is."""

"""What `octavo init` proposes for a folder: a look at it, the parts that it has, agents for them, and the text."""
